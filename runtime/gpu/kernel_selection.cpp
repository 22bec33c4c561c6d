#include "gpu/kernel_selection.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/border_table.h"
#include "select.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

bool supports_all(const LayerFacts&, const Target&, const KernelChoice&) { return true; }

/// Work-items share words of packed bits, and store bytes of a partition.
bool has_whole_bytes(const LayerFacts& layer, const KernelChoice& choice, const char* tile) {
  return !layer.makes_bits || choice.parameter(tile) >= 8;
}

/// For kernels whose groups do not share words.
bool has_whole_words(const LayerFacts& layer, const KernelChoice& choice, const char* tile) {
  return !layer.makes_bits || choice.parameter(tile) >= std::min(32, layer.shape.out_c);
}

bool supports_tile(const LayerFacts& layer, const Target&, const KernelChoice& choice) {
  return has_whole_bytes(layer, choice, "TILE_CHANNELS");
}

/// NVIDIA's tensor cores that count `and`: Turing has `xor` only.
bool has_tensor_cores(const DeviceFacts& device) {
  static const char* const families[] = {"ampere", "ada", "hopper", "blackwell"};
  return device.vendor == "nvidia" && std::any_of(std::begin(families), std::end(families),
                                                  [&](const char* name) { return device.family == name; });
}

/// A lane holds a tile's share in registers, and warps that split a window meet in local memory.
bool supports_mma(const cpu::ConvShape& shape, const DeviceFacts& device, const KernelChoice& choice,
                  int max_tile, int max_shared) {
  const int warps = choice.parameter("WARPS"), split = choice.parameter("SPLIT");
  const int tile = choice.parameter("TILE_PIXELS") * choice.parameter("TILE_FILTERS");
  return has_tensor_cores(device) && tile <= max_tile && warps * split <= 8 &&
         (split == 1 || warps * split * tile <= max_shared) &&
         (!analysis::reaches_padding(shape) || (shape.kernel_h <= 15 && shape.kernel_w <= 15));
}

/// Rows of the map, and filters, are rows of an image, four words a texel.
bool supports_image(const cpu::ConvShape& shape, const DeviceFacts& device) {
  const int words = cpu::words(shape.in_c);
  const auto texels = static_cast<size_t>(words / 4);
  const size_t window = static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w) * texels;
  return device.has_images && words % 4 == 0 &&
         static_cast<size_t>(shape.in_w) * texels <= device.image2d_max_width &&
         static_cast<size_t>(shape.in_h) <= device.image2d_max_height && window <= device.image2d_max_width &&
         static_cast<size_t>(shape.out_c) <= device.image2d_max_height;
}

/// PhoneBit VI-B: with more channels, a work-item of the paper's form makes one filter, and bits are packed
/// separately.
constexpr int kMaxIntegratedChannels = 256;

bool supports_binary(const LayerFacts& layer, const Target& target, const KernelChoice& choice) {
  const cpu::ConvShape& shape = layer.shape;
  const std::string& kernel = choice.kernel;
  if (kernel == "bconv2d_grouped") return true;
  if (layer.groups != 1) return false;
  const int64_t window = int64_t{shape.kernel_h} * shape.kernel_w * shape.in_c;
  const bool is_tile = kernel == "bconv2d_tiled" || kernel == "bconv2d_image";
  if (is_tile && choice.parameter("ACCUMULATOR") == 1 && window >= 65536) return false;  // counts in 16 bits
  if (kernel == "bconv2d_mma") return supports_mma(shape, target.device, choice, 4096, 8192);
  if (kernel == "bconv2d_image") return supports_image(shape, target.device);
  if (kernel == "bconv2d_accumulate") return layer.is_threshold;
  if (kernel == "bconv2d_byte" && choice.parameter("COMPARE") == 1 && layer.is_threshold)
    return shape.in_c <= kMaxIntegratedChannels;
  return kernel != "bgemv" || cpu::is_dense(shape);
}

/// conv2d_u8_pairs: two values of a tap in 24 bits, and sums of a row of the window in 15.
bool supports_pairs(const cpu::ConvShape& shape) {
  const int64_t at_0 = shape.input_add, at_255 = int64_t{255} * shape.input_mul + at_0;
  return shape.kernel_w * shape.in_c <= 64 && std::min(at_0, at_255) >= -255 && std::max(at_0, at_255) <= 255;
}

bool supports_u8(const LayerFacts& layer, const Target& target, const KernelChoice& choice) {
  const cpu::ConvShape& shape = layer.shape;
  if (choice.kernel == "conv2d_u8_mma") {
    const int filters = choice.parameter("TILE_FILTERS");
    return has_tensor_cores(target.device) && layer.groups == 1 && shape.dilation_w == 1 &&
           shape.kernel_w * shape.in_c >= 8 && choice.parameter("TILE_PIXELS") * filters <= 2048 &&
           (!layer.makes_bits || filters >= 32);
  }
  if (choice.kernel == "conv2d_u8_pairs" && !supports_pairs(shape)) return false;
  return (choice.kernel == "conv2d_u8_direct" || layer.groups == 1) &&
         has_whole_bytes(layer, choice, "TILE_FILTERS");
}

bool supports_float(const LayerFacts& layer, const Target& target, const KernelChoice& choice) {
  if (choice.kernel == "conv2d_f32_dot")
    return !target.is_exact && has_whole_words(layer, choice, "TILE_FILTERS");
  if (choice.parameter("FUSED") == 0 && target.is_exact) return false;
  const char* const tile = choice.kernel == "depthwise_f32" ? "TILE_CHANNELS" : "TILE_FILTERS";
  return has_whole_bytes(layer, choice, tile);
}

/// Whether every window is one run of the unpadded map: a pixel, or rows as wide as the map.
bool has_windows_of_one_run(const cpu::ConvShape& shape) {
  if (analysis::reaches_padding(shape)) return false;
  const bool is_pixel = shape.kernel_h == 1 && shape.kernel_w == 1;
  return is_pixel || (shape.dilation_h == 1 && shape.dilation_w == 1 && shape.kernel_w == shape.in_w);
}

/// What conv2d_f32_staged takes: two buffers of a chunk, and a word for each bit before they are packed.
uint64_t staged_bytes(const KernelChoice& choice) {
  const auto pixels = static_cast<uint64_t>(choice.parameter("TILE_PIXELS"));
  const auto filters = static_cast<uint64_t>(choice.parameter("TILE_FILTERS"));
  const auto chunk = static_cast<uint64_t>(choice.parameter("CHUNK"));
  return (2 * chunk * (pixels + filters) + pixels * filters) * sizeof(float);
}

/// conv2d_f32_mma: lanes own whole bytes of packed bits, and a table of places lies in local memory.
bool supports_float_mma(const LayerFacts& layer, const Target& target, const KernelChoice& choice) {
  const int window = layer.shape.kernel_h * layer.shape.kernel_w * layer.shape.in_c;
  const int places = layer.shape.in_c % 8 == 0 ? window / 8 : window;
  return supports_mma(layer.shape, target.device, choice, 2048, 4096) && places <= 3584 &&
         (!layer.makes_bits || choice.parameter("TILE_FILTERS") >= 32);
}

/// conv2d_f32_run: the map under a work-item's pixels lies in registers, two window rows of a group's weights
/// and of the map in local memory.
bool supports_run(const cpu::ConvShape& shape, const DeviceFacts& device, const KernelChoice& choice) {
  const int64_t row = int64_t{shape.kernel_w} * shape.in_c, step = int64_t{shape.stride_w} * shape.in_c;
  const int64_t pixels = choice.parameter("TILE_PIXELS"), filters = choice.parameter("GROUP_FILTERS");
  const int64_t map = (pixels * choice.parameter("GROUP_SIZE") * 8 / filters - 1) * step + row + 3;
  return shape.dilation_w == 1 && (pixels - 1) * step + row <= 96 &&
         static_cast<uint64_t>(2 * (row * filters + map)) * sizeof(float) <= device.local_bytes;
}

bool supports_float_tile(const LayerFacts& layer, const Target& target, const KernelChoice& choice) {
  const bool may_halve = !target.is_exact && layer.has_small_weights;
  if (choice.kernel == "conv2d_f32_mma") return may_halve && supports_float_mma(layer, target, choice);
  if (choice.kernel == "conv2d_f32_run")
    return supports_run(layer.shape, target.device, choice) &&
           (!target.is_exact || choice.parameter("FUSED") == 1) &&
           (!layer.makes_bits || choice.parameter("GROUP_FILTERS") >= 32);
  if (choice.kernel == "conv2d_f32" && choice.parameter("ARITHMETIC") == 1 &&
      (!may_halve || !target.device.has_half || layer.shape.in_c % 4 != 0))
    return false;
  if (choice.kernel == "conv2d_f32_staged" &&
      (!has_windows_of_one_run(layer.shape) || staged_bytes(choice) > target.device.local_bytes ||
       !has_whole_words(layer, choice, "TILE_FILTERS")))
    return false;
  return supports_float(layer, target, choice);
}

/// Output pixels: below, a device is short of work for pixels alone; above, tiles may be as large as they
/// like.
constexpr int kSmallMap = 256, kLargeMap = 4096;

const char* shape_class(const cpu::ConvShape& shape) {
  const int pixels = shape.out_h * shape.out_w;
  const bool is_pointwise = shape.kernel_h == 1 && shape.kernel_w == 1;
  if (pixels == 1) return "dense";
  if (pixels <= kSmallMap) return is_pointwise ? "small_pointwise" : "small";
  if (is_pointwise) return "pointwise";
  return pixels > kLargeMap ? "large" : "window";
}

PlannedLaunch planned_launch(const std::string& kernel, const LayerFacts& layer, const KernelChoice& choice,
                             int in_c, int pixels, int channels) {
  const cpu::ConvShape& shape = layer.shape;
  Defines defines;
  defines.set("IN_C", in_c);
  defines.set("IN_WORDS", cpu::words(in_c));
  defines.set("OUT_C", shape.out_c);
  defines.set("OUT_W", shape.out_w);
  defines.set("OUT_WORDS", cpu::words(shape.out_c));
  defines.set("CHANNEL_UNIT", channel_unit(layer.makes_bits, shape.out_c));
  defines.set("WINDOW_WORDS", cpu::words(shape.kernel_h * shape.kernel_w * (shape.in_c / layer.groups)));
  for (const Tunable& tunable : tunables(kernel)) {
    const char* const name = tunable.name.c_str();
    defines.set(name, kernel == choice.kernel ? choice.parameter(name) : tunable.default_value);
  }
  const Geometry geometry = Geometry::of_program(kernel, kernel_text(kernel), defines);
  return {kernel, geometry.global(pixels, channels), geometry.local()};
}

}  // namespace

#define PHONEBIT_DEFINE(family, op, supports, ...) const KernelFamily family = {op, {__VA_ARGS__}, supports};
PHONEBIT_KERNEL_FAMILIES(PHONEBIT_DEFINE)
#undef PHONEBIT_DEFINE

const KernelFamily* const kKernelFamilies[] = {
#define PHONEBIT_LIST(family, ...) &family,
    PHONEBIT_KERNEL_FAMILIES(PHONEBIT_LIST)
#undef PHONEBIT_LIST
        nullptr};

TuningQuery tuning_query(const KernelFamily& family, const LayerFacts& layer) {
  const cpu::ConvShape& s = layer.shape;
  return {family.op, shape_class(s),
          format_text("%dx%ds%dd%dg%d_%dc_%dx%d_%dc", s.kernel_h, s.kernel_w, s.stride_h, s.dilation_h,
                      layer.groups, s.in_c, s.out_h, s.out_w, s.out_c)};
}

bool can_run(const KernelFamily& family, const LayerFacts& layer, const Target& target,
             const KernelChoice& choice) {
  return std::find(family.kernels.begin(), family.kernels.end(), choice.kernel) != family.kernels.end() &&
         family.supports(layer, target, choice);
}

std::vector<KernelChoice> supported_choices(const KernelFamily& family, const LayerFacts& layer,
                                            const Target& target, const TuningTable& table) {
  std::vector<KernelChoice> all = table.choices(tuning_query(family, layer), target.device), supported;
  for (const char* const kernel : family.kernels) {
    if (has_kernel(kernel)) all.push_back({kernel, {}});
  }
  std::set<std::string> seen;
  for (KernelChoice& choice : all) {
    if (can_run(family, layer, target, choice) && seen.insert(choice.full_text()).second)
      supported.push_back(std::move(choice));
  }
  return supported;
}

bool supports_from(const KernelChoice& choice, int channel) {
  const int grain = channel_grain(choice);
  return grain > 0 && channel % grain == 0;
}

std::vector<PlannedLaunch> planned_launches(const KernelFamily& family, const LayerFacts& layer,
                                            const KernelChoice& choice, int pixels, int channels) {
  std::vector<PlannedLaunch> launches;
  const auto add = [&](const std::string& kernel, int in_c) {
    launches.push_back(planned_launch(kernel, layer, choice, in_c, pixels, channels));
  };
  if (choice.kernel == "conv2d_u8_planes") add(kSplitPlanes, layer.shape.in_c);
  if (&family == &kFloatConcatFamily || &family == &kBitConcatFamily)
    for (const int operand : layer.operand_channels) add(choice.kernel, operand);
  else  // a reshape copies what it writes
    add(choice.kernel, &family == &kReshapeFamily ? layer.shape.out_c : layer.shape.in_c);
  if (choice.kernel == "bconv2d_accumulate") add(kPackThresholds, layer.shape.in_c);
  return launches;
}

}  // namespace phonebit::engine::gpu
