// Which kernel of an instruction set computes a binary convolution. Nothing in select.cpp is compiled for one of
// them, so that every build can answer for every processor: plans for a phone are made on another machine.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

constexpr char kAvx512Name[] = "avx512";
constexpr char kAvx2Name[] = "avx2";
constexpr char kSme2Name[] = "sme2";
constexpr char kNeonI8mmName[] = "neon_i8mm";
constexpr char kNeonDotprodName[] = "neon_dotprod";
constexpr char kNeonName[] = "neon";
constexpr char kWasmSimdName[] = "wasm_simd";
constexpr char kScalarName[] = "scalar";

/// A processor, as far as it decides about kernels within its instruction set.
struct CpuTraits {
  int threads;             ///< that share a layer's work
  bool is_64_bit;          ///< of Arm's: has the registers for sums that filters share
  bool has_popcnt = true;  ///< of x86-64's
};

/// This one.
CpuTraits this_processor(int threads);

/// A kernel for binary convolutions: what the planner, dispatch, tests and benchmarks know of it.
struct BinaryConvRow {
  const char* name;  ///< what is learnt about one instruction set's kernels is kept under it
  bool (*supports)(const ConvShape&);
  /// Smallest number of pixels that one call computes efficiently; executors split at multiples of it.
  int pixel_tile;
  const BinaryConvKernel* code;  ///< null where it is not built
  int block_tile = 1;            ///< blocks of channels that one call computes together
  bool looks_up = false;         ///< sums of kStepChannels in tables, rather than counting the bits of words
  bool CpuTraits::* needs = nullptr;  ///< null: every processor of the instruction set has the kernel
};

// Of each instruction set, best first. The last row supports every shape; after it comes one without a name.
extern const BinaryConvRow kBinaryConv_avx512[], kBinaryConv_avx2[], kBinaryConv_sme2[], kBinaryConv_neon[],
    kBinaryConv_wasm[], kBinaryConv_scalar[];

/// An instruction set, whether or not it is built.
struct IsaRow {
  const char* name;
  const BinaryConvRow* binary_conv;
};

/// All of them, best first; after them comes one without a name.
extern const IsaRow kIsas[];
/// Those that are built, best first; ends with nullptr.
extern const Isa* const kBuiltIsas[];

/// Whether a processor computes a shape by a row's kernel.
inline bool can_compute(const BinaryConvRow& row, const ConvShape& shape, const CpuTraits& cpu) {
  return (row.needs == nullptr || cpu.*row.needs) && row.supports(shape);
}
/// The first row that can compute the shape and has enough tiles for the threads; if none has, that with the most.
/// Kernels that come later need more time in all, but have smaller tiles.
const BinaryConvRow& choose_binary_conv(const BinaryConvRow* rows, const ConvShape& shape,
                                        const CpuTraits& cpu);

/// Multiply-accumulates that a kernel makes for one output: with those that only fill its words, or its
/// steps.
int64_t window_operations(const ConvShape& shape, const BinaryConvRow& row);

bool any_shape(const ConvShape& shape);
/// Whether the window is the whole map, so that there is one output pixel.
bool is_dense(const ConvShape& shape);
/// Whether filters that share sums of planes pay: not where most lanes of a tile would be empty, and where classes are
/// so short that adding them costs as much as making them.
bool shares_sums_avx512(const ConvShape& shape);
/// Whether windows that share sums pay: many filters, which are the lanes, and long windows.
bool shares_windows_avx512(const ConvShape& shape);
/// Whether carry-save adders over the rows of 3x3 windows pay. With fewer than 128 channels the sums are too
/// short: what is done once per tile, and the re-coded map, nine times as large as the map, cost what the
/// carries save.
bool saves_carries(const ConvShape& shape);
/// Whether outer products pay: not where entering and leaving streaming mode costs as much as NEON needs for the
/// whole layer.
bool pays_outer_products(const ConvShape& shape);
/// Whether filters that share sums pay on 64-bit Arm: whole blocks of filters, long windows that fit the caches, and
/// enough pixels for the lanes.
bool shares_sums_neon(const ConvShape& shape);
bool is_one_pixel(const ConvShape& shape);

/// Channels of a step of table lookups, and steps that a row of the window is filled up to multiples of.
constexpr int kStepChannels = 4, kRunSteps = 6;
/// Positions of the longest window whose filters share sums on NEON.
constexpr int kMaxNeonPositions = 9216;
/// `pixel_tile` of the kernels, and `block_tile` of one.
constexpr int kDensePixels = 1, kOuterProductPixels = 64, kSharedAvx512Pixels = 224, kSharedWindowPixels = 7,
              kSharedWindowBlocks = 8, kSharedNeonPixels = 128, kCarrySavePixels = 7, kPopcountPixels = 28,
              kPairTablePixels = 4, kCountPixels = 2, kWasmPixels = 2, kScalarPixels = 1;

}  // namespace phonebit::engine::cpu
