// What the CPU kernels of every instruction set have in common: geometry, epilogue, function tables.
//
// Files under avx2/, avx512/, neon/, sme2/ are compiled with their own ISA flags. They must not instantiate
// anything from the standard library (the linker could pick such a copy for code that runs on a CPU without
// the ISA): plain pointers, PODs and function tables only; helpers are static or in an anonymous namespace.
// Kernels never allocate, never throw, and trust their arguments: the loader has checked every shape.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ops/steps.h"

namespace phonebit::engine::cpu {

/// Geometry of one sliding-window layer, one image. Channels are logical; a packed pixel has words(in_c) u32
/// words.
struct ConvShape {
  int in_h, in_w, in_c;
  int out_h, out_w, out_c;
  int kernel_h, kernel_w;
  int stride_h, stride_w;
  int dilation_h, dilation_w;
  int pad_top, pad_left, pad_bottom, pad_right;
  int pad_value;             // -1, 0 or +1; 0 also for float inputs
  int input_mul, input_add;  // u8 inputs: the layer sees input_mul * x + input_add
};

/// Number of u32 words that hold `channels` bits.
constexpr int words(int channels) { return (channels + 31) / 32; }

using format::StepKind;

/// One epilogue step, docs/format.md. Pointers are resolved by the executor; c counts channels of the layer.
struct EpilogueStep {
  StepKind kind;
  const float* a;               // scale, slope, or thresholds
  const float* b;               // bias, or slope of values >= 0; null: those stay as they are
  int64_t slope_pixel_stride;   // floats from one pixel's slopes to the next; 0: the same for all pixels
  const float* tensor;          // operand of kAdd and kMultiply
  int64_t tensor_pixel_stride;  // floats from one pixel to the next; 0: (1, 1, C) broadcast
  float low, high;              // kClamp
  int count;                    // kCount: rows of `a`
  int64_t count_stride;         // from one row to the next
};

constexpr int kMaxEpiloguePlanes = 4;

/// What happens to the main values of a layer. Each arithmetic sign is one float32 rounding, never
/// contracted. Pixels and channels count from the first one that the kernel computes, where all pointers
/// lead: the layer may be a part of a larger one, so neighbouring pixels are as far apart as the whole
/// layer's are.
struct Epilogue {
  const EpilogueStep* steps;
  int step_count;
  float* value;            // NHWC float32 output, or null
  uint32_t* bits;          // packed output, or null; tail bits of the last word are written as 0
  const float* threshold;  // bit = v >= threshold[c]; null: all 0
  int channels;
  int pixel_channels;  // floats from one pixel of `value` to the next; `channels` in a whole layer
  int pixel_words;     // words from one pixel of `bits` to the next; words(channels) in a whole layer
  // Bits of a level, in place of `bits`, of a multiple of 32 channels: the level is how many of its channel's
  // thresholds v reaches, level_count ascending rows of level_stride floats; its bit b goes to planes[b].
  int plane_count = 0;
  uint32_t* planes[kMaxEpiloguePlanes] = {};
  int level_count = 0;
  int64_t level_stride = 0;
};

/// Where accumulators go: exactly one of the two forms.
///   threshold form: bits = acc >= thresholds[c]   (thresholds were folded in by pack_weights)
///   epilogue form:  (float)acc through the epilogue
struct AccumulatorSink {
  uint32_t* threshold_bits;  // packed output; null selects the epilogue form
  int pixel_words;           // words from one of its pixels to the next; words(out_c) in a whole layer
  const Epilogue* epilogue;
};

/// A part of a layer's output: pixels in row-major order and blocks of kChannelBlock output channels.
struct OutputRange {
  int pixel_begin, pixel_end;
  int block_begin, block_end;
};

/// Whether to end early, which kernels ask between pieces of work that a file can make as large as it likes.
/// What they were to write is then undefined.
struct Stop {
  bool (*is_requested)(const void* context);  // null: never
  const void* context;
  bool operator()() const { return is_requested != nullptr && is_requested(context); }
};
inline constexpr Stop kNeverStop{nullptr, nullptr};

/// Output channels are worked on in blocks of this many, on every ISA, so that a block owns whole words of
/// packed output.
constexpr int kChannelBlock = 64;

/// Two convolutions with the same filters and geometry, of planes of levels: acc = acc0 + 2 acc1. They may pad with
/// different bits, but if one pads with 0, so does the other. Use: as BinaryConvKernel, with both convolutions'
/// shapes, inputs and weights, each packed for the epilogue form.
struct BinaryPlanesKernel {
  bool (*supports)(const ConvShape&);
  /// Null: the maps that the kernel itself prepares, the second one scratch_bytes after the first.
  void (*prepare_input)(const ConvShape* shapes, const uint32_t* const* inputs, void* scratch, int row_begin,
                        int row_end);
  void (*run)(const ConvShape&, const void* const* packed, const uint32_t* const* inputs, const void* scratch,
              const OutputRange&, const Epilogue&);
};
/// Whether a kernel for this processor has one: libraries without carry no code for them.
#if defined(__x86_64__) || defined(_M_X64)
inline constexpr bool kHavePlanesKernels = true;
#else
inline constexpr bool kHavePlanesKernels = false;
#endif

/// A binary convolution (dense: a window as large as the map). Input packed NHWC bits, weights as in the file
/// ([out_c][kernel_h][kernel_w][words(in_c)] words, bit 1 = +1, tail bits 0), groups == 1.
/// Use: pack_weights once at load; per image prepare_input (rows split over threads, then a barrier), then
/// run (ranges split over threads).
struct BinaryConvKernel {
  const char* name;
  size_t (*packed_bytes)(const ConvShape&);
  /// thresholds: out_c integers T (bit = acc >= T[c]), or null when the layer uses the epilogue form.
  /// `packed` is 64-byte aligned.
  void (*pack_weights)(const ConvShape&, const uint32_t* weights, const int32_t* thresholds, void* packed);
  /// Bytes of per-image scratch (padded or re-coded input), 64-byte aligned, may be 0.
  size_t (*scratch_bytes)(const ConvShape&);
  /// Number of independent rows that prepare_input can be split into (0: nothing to prepare).
  int (*prepare_rows)(const ConvShape&);
  void (*prepare_input)(const ConvShape&, const uint32_t* input, void* scratch, int row_begin, int row_end);
  void (*run)(const ConvShape&, const void* packed, const uint32_t* input, const void* scratch,
              const OutputRange&, const AccumulatorSink&);
  const BinaryPlanesKernel* planes = nullptr;  ///< null: each plane by itself
};

/// Convolution of u8 pixels with weights of -1/+1: acc = sum w * (input_mul * x + input_add), padded taps
/// count as 0. Protocol as BinaryConvKernel.
struct U8ConvKernel {
  const char* name;
  bool (*supports)(const ConvShape&);  // the last kernel of a list supports every shape
  size_t (*packed_bytes)(const ConvShape&);
  void (*pack_weights)(const ConvShape&, const uint32_t* weights, const int32_t* thresholds, void* packed);
  size_t (*scratch_bytes)(const ConvShape&);
  int (*prepare_rows)(const ConvShape&);
  void (*prepare_input)(const ConvShape&, const uint8_t* input, void* scratch, int row_begin, int row_end);
  int pixel_tile;  // smallest number of pixels that one call computes efficiently; executors split at multiples
  void (*run)(const ConvShape&, const void* packed, const uint8_t* input, const void* scratch,
              const OutputRange&, const AccumulatorSink&);
};

/// Float32 convolution, groups == 1; weights OHWI: float, or the bits of finite IEEE halves (uint16_t), or
/// small integers (int8_t), which become float32 when they are read. Each output is one chain of fused
/// multiply-adds over (kh, kw, cin) in order, starting from 0 and with padded taps as +0, so that every ISA
/// computes the same bits, and halves and integers those of the same numbers as floats. Protocol as
/// BinaryConvKernel.
template <class Weight>
struct FloatConvKernel {
  const char* name;
  size_t (*packed_bytes)(const ConvShape&);
  void (*pack_weights)(const ConvShape&, const Weight* weights, void* packed);
  size_t (*scratch_bytes)(const ConvShape&);
  int (*prepare_rows)(const ConvShape&);
  void (*prepare_input)(const ConvShape&, const float* input, void* scratch, int row_begin, int row_end);
  int pixel_tile;
  void (*run)(const ConvShape&, const void* packed, const float* input, const void* scratch,
              const OutputRange&, const Epilogue&);
};

using F32ConvKernel = FloatConvKernel<float>;
using F16ConvKernel = FloatConvKernel<uint16_t>;
using W8ConvKernel = FloatConvKernel<int8_t>;

/// Convolution of float32 values in 8-bit integers, groups == 1:
///   q(x) = nearest integer of x * multiplier, limited to -127 … 127
///   v = (float)(sum of q(x) w) * (scale * scales[c])
/// Sums are exact. With multiplier and scales 1 and sums of integers below 2^24, v has the bits of
/// W8ConvKernel. Use: as BinaryConvKernel; prepare_input is always needed.
struct I8ConvKernel {
  /// 128 + 127 times 127 this often stays below 2^31.
  static constexpr int64_t kMaxTaps = 1 << 16;

  const char* name;
  size_t (*packed_bytes)(const ConvShape&);
  /// weights OHWI, -127 to 127; scales: out_c floats, or null: 1.
  void (*pack_weights)(const ConvShape&, const int8_t* weights, const float* scales, void* packed);
  size_t (*scratch_bytes)(const ConvShape&);
  /// The largest |x|; NaNs do not count.
  float (*largest)(const float* values, size_t count);
  int (*prepare_rows)(const ConvShape&);
  void (*prepare_input)(const ConvShape&, const float* input, float multiplier, void* scratch, int row_begin,
                        int row_end);
  int pixel_tile;
  void (*run)(const ConvShape&, const void* packed, float scale, const void* scratch, const OutputRange&,
              const Epilogue&);
};

/// What portable/ defines for every ISA alike, mostly memory-bound kernels. Ranges are output rows, or pixels where
/// said. Pools and element-wise kernels may compute a part of the channels, from the one on to which all pointers lead:
/// out_c, or Epilogue::channels, of in_c, or Epilogue::pixel_channels.
struct ValueKernels {
  /// Whether multiply-adds of floats round once, as docs/format.md has it; otherwise products and sums round apart.
  bool fuses;
  F32ConvKernel f32_conv;
  F16ConvKernel f16_conv;
  W8ConvKernel w8_conv;
  /// One filter per channel over packed bits; weights [kernel_h][kernel_w][words(c)].
  void (*binary_depthwise)(const ConvShape&, const uint32_t* weights, const int32_t* thresholds,
                           const uint32_t* input, int row_begin, int row_end, const AccumulatorSink&,
                           const Stop&);
  /// Float32 depthwise convolution, weights [kernel_h][kernel_w][c], FMA chain in (kh, kw) order.
  void (*depthwise_f32)(const ConvShape&, const float* weights, const float* input, int row_begin,
                        int row_end, const Epilogue&, const Stop&);
  void (*max_pool_f32)(const ConvShape&, const float* input, int row_begin, int row_end, const Epilogue&,
                       const Stop&);
  void (*average_pool_f32)(const ConvShape&, const float* input, int row_begin, int row_end, const Epilogue&,
                           const Stop&);
  /// OR over the window, AND where flip_mask (words(c), may be null) is set.
  void (*max_pool_bits)(const ConvShape&, const uint32_t* flip_mask, const uint32_t* input, int row_begin,
                        int row_end, uint32_t* output, const Stop&);
  void (*elementwise_f32)(const float* input, int pixel_begin, int pixel_end, const Epilogue&, const Stop&);
  void (*elementwise_u8)(const uint8_t* input, int pixel_begin, int pixel_end, const Epilogue&, const Stop&);
  void (*elementwise_bits)(const uint32_t* input, int pixel_begin, int pixel_end, const Epilogue&,
                           const Stop&);
  void (*softmax)(const float* input, int pixel_begin, int pixel_end, int channels, float* output);
  void (*log_softmax)(const float* input, int pixel_begin, int pixel_end, int channels, float* output);
  /// outputs[b]: bit b of each value, cut to a whole number from 0 to 255 (NaN: 0); at most eight.
  void (*bit_planes)(const float* input, int pixel_begin, int pixel_end, int channels, int planes,
                     uint32_t* const* outputs);
};

/// Levels of a pixel in a row of an image that is resized: red, green, blue, alpha.
constexpr int kPixelLevels = 4;
/// Fractional bits of a weight: 32 less the 8 of a level and 2 for sums that overshoot before they are cut.
constexpr int kWeightBits = 32 - 8 - 2;
/// Places of a window's weights are a multiple of this, and so many samples after a row's last may be read.
constexpr int kSamplePlaces = 4;

/// What an output sample of a resized row is made of: `count` input samples from `first` on.
struct SampleWindow {
  int first, count;
};

/// Pillow's resampling, to the bit: level = (sum of weight * level, + 1/2) >> kWeightBits, from 0 to 255.
struct ResamplingKernels {
  /// `count` pixels, each of its window of `row`. A window's weights have `pitch` places, 0 from its count on.
  void (*along)(const SampleWindow* windows, size_t count, const int32_t* weights, size_t pitch,
                const uint8_t* row, uint8_t* out);
  /// Level by level the weighted sum of `count` rows of `bytes` levels.
  void (*across)(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes, uint8_t* out);
};

struct BinaryConvRow;

/// One instruction set: everything the executor needs.
struct Isa {
  const char* name;      // the value of PHONEBIT_CPU that forces it
  const char* features;  // for people, e.g. "AVX-512F/BW/VL/VPOPCNTDQ/BITALG/VNNI"
  bool (*supported)();
  const BinaryConvRow* binary_conv;    // its rows of select.h
  const U8ConvKernel* const* u8_conv;  // best first; ends with nullptr
  const I8ConvKernel* i8_conv;
  const ValueKernels* values;
  const ResamplingKernels* resampling;
};

/// The best instruction set that is built and supported here, or the one that PHONEBIT_CPU names. Returns null when
/// that name is unknown or unsupported here.
const Isa* select_isa(const char* forced_name);

}  // namespace phonebit::engine::cpu
