// What runs in streaming mode. This file alone is compiled for SME2: elsewhere the processor need not have SVE.
#include "outer_products.h"

#include <arm_sme.h>

#include "kernel_types.h"
#include "simd/inline.h"

namespace phonebit::engine::cpu::sme2 {
namespace {

/// The accumulators: as many tiles of 32-bit sums as there are.
constexpr int kTiles = 4;

/// A pixel's sums in a tile.
template <int kTile>
PHONEBIT_INLINE svint32_t differences(uint32_t row) __arm_streaming __arm_in("za") {
  return svread_hor_za32_s32_m(svundef_s32(), svptrue_b32(), kTile, row);
}

PHONEBIT_INLINE svfloat32_t value(svint32_t base, svint32_t d) __arm_streaming {
  return svcvt_f32_s32_x(svptrue_b32(), svmls_n_s32_x(svptrue_b32(), base, d, 2));
}

/// Bits of `channels` channels, a multiple of 32, of which a vector may have more.
PHONEBIT_INLINE void store_bits(svbool_t bits, int channels, uint8_t* to) __arm_streaming {
  if (channels >= kTiles * (int)svcntw()) {
    *(svbool_t*)to = bits;
    return;
  }
  volatile svbool_t words = bits;
  const svbool_t wanted = svwhilelt_b32_s32(0, channels / 32);
  svst1_u32(wanted, (uint32_t*)to, svld1_u32(wanted, (const uint32_t*)&words));
}

/// `channels` channels from channel `first` on, which are not more than the tiles have: tiles of consecutive
/// positions, a step after the other, then pixel by pixel.
PHONEBIT_INLINE void compute_channels(const OuterProducts& job, int first,
                                      int channels) __arm_streaming __arm_inout("za") {
  const svbool_t all = svptrue_b32();
  const svcount_t whole = svptrue_c32(), wanted = svwhilelt_c32_u64(0, channels, kTiles);
  const int lanes = (int)svcntw();
  const int64_t block = first / kChannelBlock, lane = first % kChannelBlock;
  const uint32_t* const weights = job.weights + block * job.step_count * kChannelBlock + lane;
  const int32_t* const entries = job.entries + block * job.block_entries + lane;
  // Copies: the compiler must assume that stores of results change the job.
  const bool wants_bits = job.bits != nullptr;
  const size_t bits_stride = job.bits_stride;
  const MapPixel* pixel = job.pixels;
  uint8_t* bits = job.bits + first / 8;
  float* values = job.values + (first - job.channel_begin);
  for (int position = 0; position < job.positions; position += lanes) {
    svzero_za();
    const uint32_t *const map = job.map + position, *w = weights;
    for (const uint32_t *step = job.steps, *end = step + job.step_count; step != end;
         ++step, w += kChannelBlock) {
      const svuint32_t x = svld1_u32(all, map + *step);
      const svuint32x4_t filters = svld1_u32_x4(whole, w);
      svbmopa_za32_u32_m(0, all, all, x, svget4_u32(filters, 0));
      svbmopa_za32_u32_m(1, all, all, x, svget4_u32(filters, 1));
      svbmopa_za32_u32_m(2, all, all, x, svget4_u32(filters, 2));
      svbmopa_za32_u32_m(3, all, all, x, svget4_u32(filters, 3));
    }
    for (; pixel->position < position + lanes; ++pixel) {
      const uint32_t row = pixel->position - position;
      const svint32x4_t entry = svld1_s32_x4(whole, entries + pixel->entries);
      const svint32_t d0 = differences<0>(row), d1 = differences<1>(row), d2 = differences<2>(row),
                      d3 = differences<3>(row);
      if (wants_bits) {
        const svbool_t low = svuzp1_b16(svcmplt_s32(all, d0, svget4_s32(entry, 0)),
                                        svcmplt_s32(all, d1, svget4_s32(entry, 1)));
        const svbool_t high = svuzp1_b16(svcmplt_s32(all, d2, svget4_s32(entry, 2)),
                                         svcmplt_s32(all, d3, svget4_s32(entry, 3)));
        store_bits(svuzp1_b8(low, high), channels, bits);
        bits += bits_stride;
      } else {
        const svfloat32x4_t v =
            svcreate4_f32(value(svget4_s32(entry, 0), d0), value(svget4_s32(entry, 1), d1),
                          value(svget4_s32(entry, 2), d2), value(svget4_s32(entry, 3), d3));
        svst1_f32_x4(wanted, values, v);
        values += kChannelBlock;
      }
    }
  }
}

void compute_blocks(const OuterProducts* job) __arm_streaming __arm_inout("za") {
  const int columns = kTiles * (int)svcntw(),
            max_channels = columns < kChannelBlock ? columns : kChannelBlock;
  for (int first = job->channel_begin; first < job->channel_end; first += max_channels) {
    const int rest = job->channel_end - first;
    compute_channels(*job, first, rest < max_channels ? rest : max_channels);
  }
}

}  // namespace

// By attributes of functions (__arm_locally_streaming, __arm_new) compilers would do this, with calls of routines that
// not every toolchain has (__arm_tpidr2_save, __arm_get_current_vg). On its own: nothing must be live in registers that
// the asm statement cannot name everywhere (x18).
__attribute__((noinline)) void compute(const OuterProducts& of) {
  register const OuterProducts* job asm("x0") = &of;
  asm volatile(
      // Lazy saving of the procedure call standard: a caller may have values in ZA, and a buffer for as many of its
      // vectors, should somebody else use it.
      "mrs x9, tpidr2_el0\n"
      "cbz x9, 2f\n"
      "ldr x10, [x9]\n"
      "ldrh w11, [x9, #8]\n"
      "mov w12, #0\n"
      "1: cmp w12, w11\n"
      "b.hs 2f\n"
      "str za[w12, #0], [x10]\n"
      "addsvl x10, x10, #1\n"
      "add w12, w12, #1\n"
      "b 1b\n"
      "2: msr tpidr2_el0, xzr\n"
      "sub sp, sp, #128\n"  // what Apple's functions may use below it
      "smstart\n"
      "bl %[compute]\n"
      "smstop\n"
      "add sp, sp, #128\n"
      : "+r"(job)
      : [compute] "S"(compute_blocks)
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x30", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
        "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
        "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

}  // namespace phonebit::engine::cpu::sme2
