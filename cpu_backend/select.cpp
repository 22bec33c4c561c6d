#include "select.h"

#include <string.h>

#include "neon/shared_planes.h"
#if defined(__x86_64__)
#include "x86_features.h"
#endif

namespace phonebit::engine::cpu {
namespace {

#include "avx512/shared_sums_shape.inl"
#include "avx512/shared_windows_shape.inl"
#include "portable/border_classes.inl"

constexpr int kCarrySaveChannels = 128;
/// Taps and channels of a window.
constexpr int kMinSharedPositions = 576;
constexpr int kMinWindowPositions = 2500;  // measured on Zen 4
/// Minimum lane utilisation in percent, for short and for long windows (measured on Zen 4).
constexpr int kFullLanesOfShort = 75, kFullLanesOfLong = 55, kLongWindow = 1000;
/// Multiply-accumulates of a layer: some 2000 cycles of NEON.
constexpr int64_t kMinStreamedMacs = 1 << 17;

int rounded_up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

/// The maximum number of tiles that a kernel so far cuts a layer into.
class MaxTiles {
 public:
  MaxTiles(const ConvShape& shape, int threads) : shape_(shape), threads_(threads) {}

  /// Whether a kernel with such tiles has more.
  bool are_more(const BinaryConvRow& row) {
    const int blocks = (shape_.out_c + kChannelBlock - 1) / kChannelBlock;
    const int tiles = (shape_.out_h * shape_.out_w + row.pixel_tile - 1) / row.pixel_tile *
                      ((blocks + row.block_tile - 1) / row.block_tile);
    if (tiles <= tiles_) return false;
    tiles_ = tiles;
    return true;
  }
  /// Sharing sums needs at most two thirds of the time of counting bits, so it wins with two thirds of the threads.
  bool are_enough() const { return 3 * tiles_ >= 2 * threads_; }

 private:
  const ConvShape& shape_;
  int threads_;
  int tiles_ = 0;
};

}  // namespace

// Where an instruction set is built (PHONEBIT_HAVE_... are 0 or 1) the code of a row, or an entry of a list.
#define PHONEBIT_IF_0(code) nullptr
#define PHONEBIT_IF_1(code) &code
#define PHONEBIT_IF_(has, code) PHONEBIT_IF_##has(code)
#define PHONEBIT_IF(has, code) PHONEBIT_IF_(has, code)
#define PHONEBIT_LIST_0(code)
#define PHONEBIT_LIST_1(code) &code,
#define PHONEBIT_LIST_(has, code) PHONEBIT_LIST_##has(code)
#define PHONEBIT_LIST(has, code) PHONEBIT_LIST_(has, code)

extern const BinaryConvKernel kDenseConv_avx512, kSharedSumsConv_avx512, kSharedWindowsConv_avx512,
    kCarrySaveConv_avx512, kPopcountConv_avx512, kDenseConv_avx2, kPairTableConv_avx2, kOuterProductConv_sme2,
    kSharedSumsConv_neon, kCountConv_neon, kCountConv_wasm, kPopcntConv_scalar, kAnyConv_scalar;
extern const Isa kAvx512Isa, kAvx2Isa, kSme2Isa, kNeonI8mmIsa, kNeonDotprodIsa, kNeonIsa, kWasmSimdIsa,
    kScalarIsa;

#define PHONEBIT_CODE(code) PHONEBIT_IF(PHONEBIT_HAVE_AVX512, code)
const BinaryConvRow kBinaryConv_avx512[] = {
    {"dense", is_dense, kDensePixels, PHONEBIT_CODE(kDenseConv_avx512)},
    {"shared_sums", shares_sums_avx512, kSharedAvx512Pixels, PHONEBIT_CODE(kSharedSumsConv_avx512)},
    {"shared_windows", shares_windows_avx512, kSharedWindowPixels, PHONEBIT_CODE(kSharedWindowsConv_avx512),
     kSharedWindowBlocks},
    {"carry_save", saves_carries, kCarrySavePixels, PHONEBIT_CODE(kCarrySaveConv_avx512)},
    {"popcount", any_shape, kPopcountPixels, PHONEBIT_CODE(kPopcountConv_avx512)},
    {}};
#undef PHONEBIT_CODE
#define PHONEBIT_CODE(code) PHONEBIT_IF(PHONEBIT_HAVE_AVX2, code)
const BinaryConvRow kBinaryConv_avx2[] = {
    {"dense", is_dense, kDensePixels, PHONEBIT_CODE(kDenseConv_avx2)},
    {"pair_table", any_shape, kPairTablePixels, PHONEBIT_CODE(kPairTableConv_avx2), 1, true},
    {}};
#undef PHONEBIT_CODE
#define PHONEBIT_NEON_ROWS                                                                 \
  {"dense", is_one_pixel, kDensePixels, PHONEBIT_IF(PHONEBIT_HAVE_NEON, kCountConv_neon)}, \
      {"shared_sums",                                                                      \
       shares_sums_neon,                                                                   \
       kSharedNeonPixels,                                                                  \
       PHONEBIT_IF(PHONEBIT_HAVE_NEON_64, kSharedSumsConv_neon),                           \
       1,                                                                                  \
       false,                                                                              \
       &CpuTraits::is_64_bit},                                                             \
      {"count", any_shape, kCountPixels, PHONEBIT_IF(PHONEBIT_HAVE_NEON, kCountConv_neon)}, {}
const BinaryConvRow kBinaryConv_neon[] = {PHONEBIT_NEON_ROWS};
const BinaryConvRow kBinaryConv_sme2[] = {{"outer_products", pays_outer_products, kOuterProductPixels,
                                           PHONEBIT_IF(PHONEBIT_HAVE_SME2, kOuterProductConv_sme2)},
                                          PHONEBIT_NEON_ROWS};
const BinaryConvRow kBinaryConv_wasm[] = {
    {"count", any_shape, kWasmPixels, PHONEBIT_IF(PHONEBIT_HAVE_WASM_SIMD, kCountConv_wasm)}, {}};
const BinaryConvRow kBinaryConv_scalar[] = {
    {"popcount", any_shape, kScalarPixels, PHONEBIT_IF(PHONEBIT_HAVE_POPCNT, kPopcntConv_scalar), 1, false,
     &CpuTraits::has_popcnt},
    {"popcount", any_shape, kScalarPixels, &kAnyConv_scalar},
    {}};

const IsaRow kIsas[] = {
    {kAvx512Name, kBinaryConv_avx512}, {kAvx2Name, kBinaryConv_avx2},        {kSme2Name, kBinaryConv_sme2},
    {kNeonI8mmName, kBinaryConv_neon}, {kNeonDotprodName, kBinaryConv_neon}, {kNeonName, kBinaryConv_neon},
    {kWasmSimdName, kBinaryConv_wasm}, {kScalarName, kBinaryConv_scalar},    {}};

// clang-format off
const Isa* const kBuiltIsas[] = {
    PHONEBIT_LIST(PHONEBIT_HAVE_AVX512, kAvx512Isa)
    PHONEBIT_LIST(PHONEBIT_HAVE_AVX2, kAvx2Isa)
    PHONEBIT_LIST(PHONEBIT_HAVE_SME2, kSme2Isa)
    PHONEBIT_LIST(PHONEBIT_HAVE_NEON_I8MM, kNeonI8mmIsa)
    PHONEBIT_LIST(PHONEBIT_HAVE_NEON_DOTPROD, kNeonDotprodIsa)
    PHONEBIT_LIST(PHONEBIT_HAVE_NEON, kNeonIsa)
    PHONEBIT_LIST(PHONEBIT_HAVE_WASM_SIMD, kWasmSimdIsa)
    &kScalarIsa, nullptr};
// clang-format on

CpuTraits this_processor(int threads) {
#if defined(__x86_64__)
  return {threads, true, x86_has_popcnt()};
#else
  return {threads, sizeof(void*) == 8, false};
#endif
}

const Isa* select_isa(const char* forced_name) {
  const bool is_forced = forced_name != nullptr && forced_name[0] != '\0';
  for (const Isa* const* isa = kBuiltIsas; *isa != nullptr; ++isa) {
    if (is_forced && strcmp((*isa)->name, forced_name) != 0) continue;
    if ((*isa)->supported()) return *isa;
  }
  return nullptr;
}

bool any_shape(const ConvShape&) { return true; }

bool is_dense(const ConvShape& s) {
  return s.out_h * s.out_w == 1 && s.kernel_h == s.in_h && s.kernel_w == s.in_w && s.dilation_h == 1 &&
         s.dilation_w == 1 && !reaches_padding(s);
}

bool shares_sums_avx512(const ConvShape& s) {
  if (s.stride_h != 1 || s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1) return false;
  if (s.in_c % 32 != 0 || s.out_c % kChannelBlock != 0) return false;
  if (window_positions(s) < kMinSharedPositions || window_positions(s) > kMaxSharedPositions) return false;
  if (all_planes_bytes(s) > kMaxPlanesBytes || padded_row_bytes(s) > kMaxRowBytes) return false;
  if (row_classes(s, nullptr) * column_classes(s, nullptr) > kMaxBorderClasses) return false;
  const int groups = s.out_h * row_groups(s), full = groups / tile_groups(s) * tile_groups(s);
  const int rest = groups - full > 32 ? 64 : groups > full ? 32 : 0;
  const int min_full = window_positions(s) < kLongWindow ? kFullLanesOfShort : kFullLanesOfLong;
  return s.out_h * s.out_w * int64_t{100} >= int64_t{full + rest} * kGroupPixels * min_full;
}

bool shares_windows_avx512(const ConvShape& s) {
  if (s.in_c % 32 != 0 || s.out_c % kLaneFilters != 0 || s.out_w < 4 || s.kernel_h > kMaxKernelRows)
    return false;
  if (window_positions(s) < kMinWindowPositions || window_positions(s) > kMaxWindowPositions) return false;
  return int64_t{group_columns(s)} * s.in_c <= 8 * kMaxGroupRowBytes;
}

bool saves_carries(const ConvShape& s) {
  return s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.in_c % 32 == 0 && s.in_c >= kCarrySaveChannels;
}

bool pays_outer_products(const ConvShape& s) {
  const int64_t window = int64_t{s.kernel_h} * s.kernel_w * s.in_c;
  return window * s.out_c * s.out_h * s.out_w >= kMinStreamedMacs;
}

bool shares_sums_neon(const ConvShape& s) {
  const SharedPlanes planes(s);
  return s.out_c % 32 == 0 && planes.positions >= 256 && planes.positions <= kMaxNeonPositions &&
         planes.offset(planes.positions) < kMaxPlaneBytes && s.out_h * s.out_w >= 49;
}

bool is_one_pixel(const ConvShape& s) { return s.out_h * s.out_w == 1; }

const BinaryConvRow& choose_binary_conv(const BinaryConvRow* rows, const ConvShape& shape,
                                        const CpuTraits& cpu) {
  const BinaryConvRow* best = nullptr;
  MaxTiles tiles(shape, cpu.threads);
  for (const BinaryConvRow* row = rows; row->name != nullptr && !tiles.are_enough(); ++row) {
    if (can_compute(*row, shape, cpu) && tiles.are_more(*row)) best = row;
  }
  return *best;
}

int64_t window_operations(const ConvShape& s, const BinaryConvRow& row) {
  if (!row.looks_up) return int64_t{s.kernel_h} * s.kernel_w * words(s.in_c) * 32;
  const int steps = s.kernel_w * ((s.in_c + kStepChannels - 1) / kStepChannels);
  return int64_t{s.kernel_h} * rounded_up(steps, kRunSteps) * kStepChannels;
}

}  // namespace phonebit::engine::cpu
