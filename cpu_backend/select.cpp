#include "select.h"

#include <string.h>

#include "neon/shared_planes.h"

namespace phonebit::engine::cpu {
namespace {

#include "avx512/shared_sums_shape.inl"
#include "avx512/shared_windows_shape.inl"
#include "portable/border_classes.inl"

constexpr int kCarrySaveChannels = 128;
/// Taps and channels of a window.
constexpr int kLeastSharedPositions = 576;
constexpr int kLeastWindowPositions = 2500;  // measured on Zen 4
/// Of a hundred lanes, how many must be pixels: with short windows and long ones (measured on Zen 4).
constexpr int kFullLanesOfShort = 75, kFullLanesOfLong = 55, kLongWindow = 1000;
/// Multiply-accumulates of a layer: some 2000 cycles of NEON.
constexpr int64_t kLeastStreamedMacs = 1 << 17;

int rounded_up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

/// The most tiles that a kernel so far cuts a layer into.
class MostTiles {
 public:
  MostTiles(const ConvShape& shape, int threads) : shape_(shape), threads_(threads) {}

  /// Whether a kernel with such tiles has more.
  bool are_more(int pixel_tile, int block_tile) {
    const int blocks = (shape_.out_c + kChannelBlock - 1) / kChannelBlock;
    const int tiles = (shape_.out_h * shape_.out_w + pixel_tile - 1) / pixel_tile *
                      ((blocks + block_tile - 1) / block_tile);
    if (tiles <= tiles_) return false;
    tiles_ = tiles;
    return true;
  }
  /// Sharing sums takes at most two thirds of the time of counting bits, so it wins with two thirds of the threads.
  bool are_enough() const { return 3 * tiles_ >= 2 * threads_; }

 private:
  const ConvShape& shape_;
  int threads_;
  int tiles_ = 0;
};

bool serves_all(const ConvShape&, const CpuTraits&) { return true; }
bool serves_dense(const ConvShape& s, const CpuTraits&) { return is_dense(s); }
bool serves_by_sums_of_avx512(const ConvShape& s, const CpuTraits&) { return shares_sums_avx512(s); }
bool serves_by_windows_of_avx512(const ConvShape& s, const CpuTraits&) { return shares_windows_avx512(s); }
bool serves_by_carries(const ConvShape& s, const CpuTraits&) { return saves_carries(s); }
bool serves_by_outer_products(const ConvShape& s, const CpuTraits&) { return pays_outer_products(s); }
bool serves_one_pixel(const ConvShape& s, const CpuTraits&) { return !has_several_pixels(s); }
bool serves_by_sums_of_neon(const ConvShape& s, const CpuTraits& cpu) {
  return cpu.is_64_bit && shares_sums_neon(s);
}

// Best first; the last one of an instruction set serves every shape.
constexpr BinaryConvRule kAvx512Rules[] = {
    {"dense", serves_dense, kDensePixels, false},
    {"shared_sums", serves_by_sums_of_avx512, kSharedAvx512Pixels, false},
    {"shared_windows", serves_by_windows_of_avx512, kSharedWindowPixels, false, kSharedWindowBlocks},
    {"carry_save", serves_by_carries, kCarrySavePixels, false},
    {"popcount", serves_all, kPopcountPixels, false}};
constexpr BinaryConvRule kAvx2Rules[] = {{"dense", serves_dense, kDensePixels, false},
                                         {"pair_table", serves_all, kPairTablePixels, true}};
constexpr BinaryConvRule kNeonRules[] = {{"dense", serves_one_pixel, kDensePixels, false},
                                         {"shared_sums", serves_by_sums_of_neon, kSharedNeonPixels, false},
                                         {"count", serves_all, kCountPixels, false}};
constexpr BinaryConvRule kSme2Rules[] = {
    {"outer_products", serves_by_outer_products, kOuterProductPixels, false},
    {"dense", serves_one_pixel, kDensePixels, false},
    {"shared_sums", serves_by_sums_of_neon, kSharedNeonPixels, false},
    {"count", serves_all, kCountPixels, false}};
constexpr BinaryConvRule kScalarRules[] = {{"popcount", serves_all, kScalarPixels, false}};

const BinaryConvRule* rules_of(const char* isa) {
  const auto is = [isa](const char* name) { return strcmp(isa, name) == 0; };
  if (is(kAvx512Name)) return kAvx512Rules;
  if (is(kAvx2Name)) return kAvx2Rules;
  if (is(kSme2Name)) return kSme2Rules;
  if (is(kScalarName)) return kScalarRules;
  return is(kNeonI8mmName) || is(kNeonDotprodName) || is(kNeonName) ? kNeonRules : nullptr;
}

}  // namespace

bool is_dense(const ConvShape& s) {
  return s.out_h * s.out_w == 1 && s.kernel_h == s.in_h && s.kernel_w == s.in_w && s.dilation_h == 1 &&
         s.dilation_w == 1 && !reaches_padding(s);
}

bool shares_sums_avx512(const ConvShape& s) {
  if (s.stride_h != 1 || s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1) return false;
  if (s.in_c % 32 != 0 || s.out_c % kChannelBlock != 0) return false;
  if (window_positions(s) < kLeastSharedPositions || window_positions(s) > kMostSharedPositions) return false;
  if (all_planes_bytes(s) > kMostPlanesBytes || padded_row_bytes(s) > kMostRowBytes) return false;
  if (row_classes(s, nullptr) * column_classes(s, nullptr) > kMostBorderClasses) return false;
  const int groups = s.out_h * row_groups(s), full = groups / tile_groups(s) * tile_groups(s);
  const int rest = groups - full > 32 ? 64 : groups > full ? 32 : 0;
  const int least = window_positions(s) < kLongWindow ? kFullLanesOfShort : kFullLanesOfLong;
  return s.out_h * s.out_w * int64_t{100} >= int64_t{full + rest} * kGroupPixels * least;
}

bool shares_windows_avx512(const ConvShape& s) {
  if (s.in_c % 32 != 0 || s.out_c % kLaneFilters != 0 || s.out_w < 4 || s.kernel_h > kMostKernelRows)
    return false;
  if (window_positions(s) < kLeastWindowPositions || window_positions(s) > kMostWindowPositions) return false;
  return int64_t{group_columns(s)} * s.in_c <= 8 * kMostGroupRowBytes;
}

bool saves_carries(const ConvShape& s) {
  return s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.in_c % 32 == 0 && s.in_c >= kCarrySaveChannels;
}

bool pays_outer_products(const ConvShape& s) {
  const int64_t window = int64_t{s.kernel_h} * s.kernel_w * s.in_c;
  return window * s.out_c * s.out_h * s.out_w >= kLeastStreamedMacs;
}

bool shares_sums_neon(const ConvShape& s) {
  const SharedPlanes planes(s);
  return s.out_c % 32 == 0 && planes.positions >= 256 && planes.positions <= kMostNeonPositions &&
         planes.offset(planes.positions) < kMostPlaneBytes && s.out_h * s.out_w >= 49;
}

bool has_several_pixels(const ConvShape& s) { return s.out_h * s.out_w > 1; }

const BinaryConvRule* binary_conv_rule(const char* isa, const ConvShape& shape, const CpuTraits& traits) {
  const BinaryConvRule *rule = rules_of(isa), *best = nullptr;
  MostTiles tiles(shape, traits.threads);
  for (; rule != nullptr && !tiles.are_enough(); ++rule) {
    if (rule->serves(shape, traits) && tiles.are_more(rule->pixel_tile, rule->block_tile)) best = rule;
    if (rule->serves == serves_all) break;
  }
  return best;
}

const BinaryConvKernel& binary_conv_kernel(const Isa& isa, const ConvShape& shape, int threads) {
  const BinaryConvKernel* best = nullptr;
  MostTiles tiles(shape, threads);
  for (const BinaryConvKernel* const* kernel = isa.binary_conv; *kernel != nullptr && !tiles.are_enough();
       ++kernel) {
    if ((*kernel)->supports(shape) && tiles.are_more((*kernel)->pixel_tile, (*kernel)->block_tile))
      best = *kernel;
  }
  return *best;
}

int64_t window_operations(const ConvShape& s, const BinaryConvRule& rule) {
  if (!rule.looks_up) return int64_t{s.kernel_h} * s.kernel_w * words(s.in_c) * 32;
  const int steps = s.kernel_w * ((s.in_c + kStepChannels - 1) / kStepChannels);
  return int64_t{s.kernel_h} * rounded_up(steps, kRunSteps) * kStepChannels;
}

}  // namespace phonebit::engine::cpu
