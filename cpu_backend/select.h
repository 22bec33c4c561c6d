// Which kernel of an instruction set computes a binary convolution. Nothing behind this header is compiled
// for one of them, so that every build can answer for every processor: plans for a phone are made on another
// machine.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

constexpr char kAvx512Name[] = "avx512";
constexpr char kAvx2Name[] = "avx2";
constexpr char kSme2Name[] = "sme2";
constexpr char kNeonI8mmName[] = "neon_i8mm";
constexpr char kNeonDotprodName[] = "neon_dotprod";
constexpr char kNeonName[] = "neon";
constexpr char kScalarName[] = "scalar";

/// The instruction sets of all builds, best first; ends with nullptr.
constexpr const char* kIsaNames[] = {kAvx512Name,      kAvx2Name, kSme2Name,   kNeonI8mmName,
                                     kNeonDotprodName, kNeonName, kScalarName, nullptr};

/// Whether the window is the whole map, so that there is one output pixel.
bool is_dense(const ConvShape& shape);
/// Whether filters that share sums of planes pay: not where most lanes of a tile would be empty, and where classes are
/// so short that adding them takes as long as making them.
bool shares_sums_avx512(const ConvShape& shape);
/// Whether windows that share sums pay: many filters, which are the lanes, and long windows.
bool shares_windows_avx512(const ConvShape& shape);
/// Whether carry-save adders over the rows of 3x3 windows pay. Below 128 channels a tile's sums are too
/// short: what is done once a tile, and the re-coded map, nine times as large as the map, cost what the
/// carries save.
bool saves_carries(const ConvShape& shape);
/// Whether outer products pay: not where entering and leaving streaming mode takes as long as NEON takes for the
/// whole layer.
bool pays_outer_products(const ConvShape& shape);
/// Whether filters that share sums pay on 64-bit Arm: whole blocks of filters, long windows that fit the caches, and
/// enough pixels for the lanes.
bool shares_sums_neon(const ConvShape& shape);
/// A single pixel uses each weight once: then the layout with half as many bytes wins over tables.
bool has_several_pixels(const ConvShape& shape);

/// Channels of a step of table lookups, and steps that a row of the window is filled up to multiples of.
constexpr int kStepChannels = 4, kRunSteps = 6;
/// Positions of the longest window whose filters share sums on NEON.
constexpr int kMostNeonPositions = 9216;
/// `pixel_tile` of the kernels, and `block_tile` of one.
constexpr int kDensePixels = 1, kOuterProductPixels = 64, kSharedAvx512Pixels = 224, kSharedWindowPixels = 7,
              kSharedWindowBlocks = 8, kSharedNeonPixels = 128, kCarrySavePixels = 7, kPopcountPixels = 28,
              kPairTablePixels = 4, kCountPixels = 2, kScalarPixels = 1;

/// A processor, as far as it decides about kernels beside its instruction set.
struct CpuTraits {
  int threads;     ///< that share a layer's work
  bool is_64_bit;  ///< of Arm's: has the registers for sums that filters share
};

/// A kernel for binary convolutions, as cost models know it.
struct BinaryConvRule {
  const char* name;  ///< what is learnt about one instruction set's kernels is kept under it
  bool (*serves)(const ConvShape&, const CpuTraits&);
  int pixel_tile;
  bool looks_up;  ///< sums of kStepChannels in tables, rather than counting the bits of words
  int block_tile = 1;
};

/// The rule of the kernel that computes a shape; null for an unknown instruction set.
const BinaryConvRule* binary_conv_rule(const char* isa, const ConvShape& shape, const CpuTraits& traits);
/// The kernel of this processor: the first that serves the shape and has enough tiles for the threads; if none has, that
/// with the most. Kernels that come later take more time in all, but have smaller tiles.
const BinaryConvKernel& binary_conv_kernel(const Isa& isa, const ConvShape& shape, int threads);

/// Multiply-accumulates that a kernel makes for one output: with those that only fill its words, or its
/// steps.
int64_t window_operations(const ConvShape& shape, const BinaryConvRule& rule);

}  // namespace phonebit::engine::cpu
