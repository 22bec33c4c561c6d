// An instruction set made as docs/extending.md says, of generic primitives alone. Like WebAssembly's it has no fused
// multiply-add, so products and sums of its float layers round apart. Tests of kernels run on it, too.
#include <vector>

#include "isa_kernels.h"
#include "kernel_check.h"
#include "simd/inline.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 16, kStreamAheadBytes = 0;
constexpr bool kSmallCode = false;
#include "simd/generic.inl"
constexpr RegisterTile kF32Tile = {2, 6}, kU8Tile = {2, 2}, kByteTile = {2, 2};
constexpr bool kFuses = false;
using generic::broadcast, generic::load_partial, generic::store_partial, generic::load_bytes,
    generic::load_halves, generic::maximum, generic::minimum, generic::nearest_integer, generic::join_lanes,
    generic::count_ones, generic::MapValue, generic::kByteOffset, generic::GroupWeights, generic::GroupSums,
    generic::load_group_weights, generic::add_group_products, generic::group_sums, generic::kPlusByte,
    generic::kMinusByte, generic::kFlushGroups, generic::U8VectorSum, generic::add_products,
    generic::whole_sums, generic::load_levels, generic::store_levels, generic::store_pixel,
    generic::spread_weights, generic::sum_pixels;
PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) { return a * b + c; }
#include "simd/bits_by_lane.inl"
// These use what the lines above define.
#include "portable/all_kernels.inl"

constexpr const U8ConvKernel* kU8Conv[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
bool supported() { return true; }
constexpr Isa kDummyIsa = {"dummy", "none",          supported,      kBinaryConv_scalar,
                           kU8Conv, &kI8Convolution, &kValueKernels, &kResampling};

[[maybe_unused]] const bool kIsAdded = (check::test_isas().push_back(&kDummyIsa), true);

}  // namespace
}  // namespace phonebit::engine::cpu
