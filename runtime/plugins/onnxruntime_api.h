// What the plugin needs of ONNX Runtime's C interface, version 23 (ONNX Runtime 1.23): so a build needs no headers.
// Names are ONNX Runtime's. Its tables only grow at their ends; gaps are functions that nobody calls here.
// .ci/plugin_headers compares all of it with ONNX Runtime's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::plugins {

constexpr uint32_t ORT_API_VERSION = 23;

enum OrtErrorCode : int { ORT_INVALID_ARGUMENT = 2, ORT_EP_FAIL = 11 };
enum OrtOpAttrType : int { ORT_OP_ATTR_STRING = 5 };
enum OrtHardwareDeviceType : int { OrtHardwareDeviceType_CPU = 0 };
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2
};

struct OrtAllocator;
struct OrtDataTransferImpl;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtNodeFusionOptions;
struct OrtOpAttr;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;
struct OrtValue;
struct OrtValueInfo;
struct OrtEp;
struct OrtEpFactory;
struct OrtNodeComputeInfo;

struct OrtEpApi {
  OrtStatus* (*CreateEpDevice)(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*,
                               const OrtKeyValuePairs*, OrtEpDevice**);
  void* gap1[1];
  OrtStatus* (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t,
                                                  const OrtNodeFusionOptions*);
};

struct OrtApi {
  OrtStatus* (*CreateStatus)(OrtErrorCode, const char*);
  void* gap1[50];
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**);
  void* gap52[8];
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*, ONNXTensorElementDataType*);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t);
  void* gap63[2];
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**);
  void* gap66[22];
  OrtStatus* (*KernelContext_GetInputCount)(const OrtKernelContext*, size_t*);
  void* gap89[1];
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext*, size_t, const OrtValue**);
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**);
  void* gap92[1];
  void (*ReleaseStatus)(OrtStatus*);
  void* gap94[5];
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*);
  void* gap100[137];
  OrtStatus* (*HasSessionConfigEntry)(const OrtSessionOptions*, const char*, int*);
  OrtStatus* (*GetSessionConfigEntry)(const OrtSessionOptions*, const char*, char*, size_t*);
  void* gap239[33];
  OrtStatus* (*ReadOpAttr)(const OrtOpAttr*, OrtOpAttrType, void*, size_t, size_t*);
  void* gap273[16];
  OrtStatus* (*GetValueInfoName)(const OrtValueInfo*, const char**);
  void* gap290[17];
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice*);
  void* gap308[9];
  const OrtEpApi* (*GetEpApi)();
  void* gap318[26];
  OrtStatus* (*Graph_GetNumNodes)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetNodes)(const OrtGraph*, const OrtNode**, size_t);
  void* gap346[4];
  OrtStatus* (*Node_GetOperatorType)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetDomain)(const OrtNode*, const char**);
  void* gap352[3];
  OrtStatus* (*Node_GetNumOutputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetOutputs)(const OrtNode*, const OrtValueInfo**, size_t);
  void* gap357[4];
  OrtStatus* (*Node_GetAttributeByName)(const OrtNode*, const char*, const OrtOpAttr**);
};

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t);
  const char* (*GetVersionString)();
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void**);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void*, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void*);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t, OrtNodeComputeInfo**, OrtNode**);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo**, size_t);
  void* gap5[8];
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, OrtEpDevice**,
                                    size_t, size_t*);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                         size_t, const OrtSessionOptions*, const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  void* gap8[1];
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*IsStreamAware)(const OrtEpFactory*);
  void* gap13[1];
};

}  // namespace phonebit::engine::plugins
