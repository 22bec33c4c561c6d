// What the delegate needs of LiteRT's C interface for operators, which is that of TensorFlow Lite: so a build needs no
// headers. Names are LiteRT's, who calls its structures semi-stable: they only grow at their ends. Gaps are fields that
// nobody uses here. .ci/plugin_headers compares all of it with TensorFlow Lite's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::plugins {

enum TfLiteStatus : int { kTfLiteOk = 0, kTfLiteError = 1 };
enum TfLiteType : int { kTfLiteFloat32 = 1, kTfLiteUInt8 = 3 };
/// Of a delegate that takes tensors as they are; LiteRT then prepares no node of the model before.
constexpr int64_t kTfLiteDelegateFlagsAllowDynamicTensors = 1;

struct TfLiteDelegate;
struct TfLiteRegistration;

struct TfLiteIntArray {
  int size;
  int* data() { return &size + 1; }
};

struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};

struct TfLiteQuantization {
  int type;
  void* params;
};

/// Whole, since they lie one after the other.
struct TfLiteTensor {
  TfLiteType type;
  void* data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  int allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale, is_variable;
  TfLiteQuantization quantization;
  void* sparsity;
  const TfLiteIntArray* dims_signature;
};

struct TfLiteContext;

struct TfLiteNode {
  void* gap0[4];
  void* user_data;
};

struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext*, TfLiteIntArray**);
  TfLiteTensor* tensors;
  void* gap3;
  TfLiteStatus (*ResizeTensor)(TfLiteContext*, TfLiteTensor*, TfLiteIntArray*);  ///< frees the sizes
  void (*ReportError)(TfLiteContext*, const char*, ...);
  void* gap6[2];
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext*, TfLiteRegistration,
                                                        const TfLiteIntArray*, TfLiteDelegate*);
};

struct TfLiteRegistration {
  void* (*init)(TfLiteContext*, const char*, size_t);
  void (*free)(TfLiteContext*, void*);
  TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*);
  TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*);
  void* gap4;
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void* gap8[8];  // more than there are: what comes later is null
};

/// A delegate kernel's `init` gets it as its buffer.
struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
};

struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext*, TfLiteDelegate*);
  void* gap2[3];
  int64_t flags;
  void* gap6;
};

}  // namespace phonebit::engine::plugins
