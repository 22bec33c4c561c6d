// Which kernels support a layer, and by which launches, told from its geometry and facts about the device:
// the runtime asks for layers of loaded files, planners for layers and devices that are elsewhere.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "gpu/device_facts.h"
#include "gpu/geometry.h"
#include "gpu/kernel_library.h"
#include "gpu/tuning_table.h"
#include "kernel_types.h"

namespace phonebit::engine::gpu {

/// What decides about a layer's kernels.
struct LayerFacts {
  cpu::ConvShape shape;  ///< channels of the whole layer, whatever its groups
  int groups;
  bool makes_bits;                    ///< writes packed bits
  bool is_threshold;                  ///< which integer comparisons make
  std::vector<int> operand_channels;  ///< of each operand
  /// Full-precision weights that the file stores in 16 or 8 bits: halves may be multiplied below exact
  /// precision.
  bool has_small_weights = false;
};

/// What decides about them besides the layer.
struct Target {
  const DeviceFacts& device;
  /// Only kernels whose float results have the bits of the CPU backend (binary layers are exact in any case).
  bool is_exact;
};

/// The kernels of one kind of op. A constant: nothing is made when the library is loaded.
struct KernelFamily {
  const char* op;  ///< in tuning tables
  /// The last one supports every layer, with default parameters.
  std::initializer_list<const char*> kernels;
  /// Whether a choice of these kernels supports a layer: every @requires holds.
  bool (*supports)(const LayerFacts& layer, const Target& target, const KernelChoice& choice);
};

/// The family, KernelFamily::op, KernelFamily::supports, and the kernels. Cost models number the families by
/// their places in this list: new ones come last.
// clang-format off
#define PHONEBIT_KERNEL_FAMILIES(FAMILY) \
  FAMILY(kBinaryConvFamily,       "binary_conv2d",           supports_binary,     "bconv2d_tiled", "bconv2d_mma", "bconv2d_image", "bgemv", "bconv2d_split", "bconv2d_byte", "bconv2d_accumulate", "bconv2d_lanes", "bconv2d_grouped") \
  FAMILY(kBinaryDepthwiseFamily,  "binary_depthwise_conv2d", supports_all,        "bdepthwise2d") \
  FAMILY(kU8ConvFamily,           "conv2d_u8",               supports_u8,         "conv2d_u8_planes", "conv2d_u8_mma", "conv2d_u8_pairs", "conv2d_u8_direct") \
  FAMILY(kFloatConvFamily,        "conv2d_f32",              supports_float_tile, "conv2d_f32_dot", "conv2d_f32_staged", "conv2d_f32_run", "conv2d_f32_mma", "conv2d_f32") \
  FAMILY(kFloatGroupedConvFamily, "conv2d_f32_grouped",      supports_float,      "conv2d_f32_grouped") \
  FAMILY(kFloatDepthwiseFamily,   "depthwise_conv2d_f32",    supports_float,      "depthwise_f32") \
  FAMILY(kMaxPoolFamily,          "max_pool2d",              supports_tile,       "pool") \
  FAMILY(kBitPoolFamily,          "max_pool2d_bits",         supports_all,        "max_pool_bits") \
  FAMILY(kAveragePoolFamily,      "average_pool2d",          supports_tile,       "pool") \
  FAMILY(kElementwiseFamily,      "elementwise",             supports_tile,       "elementwise") \
  FAMILY(kFloatConcatFamily,      "concat",                  supports_all,        "concat") \
  FAMILY(kBitConcatFamily,        "concat_bits",             supports_all,        "concat_bits") \
  FAMILY(kPadFamily,              "pad",                     supports_all,        "pad") \
  FAMILY(kReshapeFamily,          "reshape",                 supports_all,        "concat") \
  FAMILY(kSelectChannelsFamily,   "select_channels",         supports_all,        "select_channels") \
  FAMILY(kSoftmaxFamily,          "softmax",                 supports_all,        "softmax") \
  FAMILY(kLogSoftmaxFamily,       "log_softmax",             supports_all,        "softmax") \
  FAMILY(kResizeFamily,           "resize_bilinear",         supports_all,        "resize_bilinear") \
  FAMILY(kResizeCornersFamily,    "resize_bilinear_corners", supports_all,        "resize_bilinear") \
  FAMILY(kBicubicFamily,          "resize_bicubic",          supports_all,        "resize_bicubic") \
  FAMILY(kBicubicCornersFamily,   "resize_bicubic_corners",  supports_all,        "resize_bicubic") \
  FAMILY(kMatmulFamily,           "matmul",                  supports_all,        "matmul") \
  FAMILY(kMatmulTransposedFamily, "matmul_transposed",       supports_all,        "matmul") \
  FAMILY(kBitMatmulFamily,        "matmul_bits",             supports_all,        "matmul_bits") \
  FAMILY(kBitPlanesFamily,        "bit_planes",              supports_all,        "bit_planes")
// clang-format on

#define PHONEBIT_DECLARE(family, ...) extern const KernelFamily family;
PHONEBIT_KERNEL_FAMILIES(PHONEBIT_DECLARE)
#undef PHONEBIT_DECLARE
/// All of them; ends with nullptr.
extern const KernelFamily* const kKernelFamilies[];

/// What the tuning table is asked about a layer.
TuningQuery tuning_query(const KernelFamily& family, const LayerFacts& layer);

/// Whether a choice is of the family's kernels and supports the layer.
bool can_run(const KernelFamily& family, const LayerFacts& layer, const Target& target,
             const KernelChoice& choice);

/// What supports a layer, best first: the table's choices, then every kernel with its default parameters.
std::vector<KernelChoice> supported_choices(const KernelFamily& family, const LayerFacts& layer,
                                            const Target& target, const TuningTable& table);

/// Whether a choice can compute channels from `channel` on: its kernel has parts that begin there.
bool supports_from(const KernelChoice& choice, int channel);

/// Kernels that work in two launches have one of these before or after them.
constexpr char kSplitPlanes[] = "split_planes", kPackThresholds[] = "pack_thresholds";

/// One launch as the runtime makes it.
struct PlannedLaunch {
  std::string kernel;
  Extent global, local;
};

/// The launches of a part of the output, in order.
std::vector<PlannedLaunch> planned_launches(const KernelFamily& family, const LayerFacts& layer,
                                            const KernelChoice& choice, int pixels, int channels);

}  // namespace phonebit::engine::gpu
