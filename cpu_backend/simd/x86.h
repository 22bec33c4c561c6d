// What all x86 processors have in common.
#pragma once

#include "inline.h"

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 warns about its own undefined-value operands in AVX-512 intrinsics (gcc bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifndef PHONEBIT_STREAM_AHEAD_BYTES
#define PHONEBIT_STREAM_AHEAD_BYTES 16384
#endif

namespace phonebit::engine::cpu {
namespace {

constexpr int kStreamAheadBytes = PHONEBIT_STREAM_AHEAD_BYTES;
constexpr bool kSmallCode = false;

/// See generic.inl.
typedef int32_t PixelVector __attribute__((vector_size(16)));
PHONEBIT_INLINE void store_pixel(uint8_t* to, PixelVector v) {
  const __m128i shorts = _mm_packs_epi32((__m128i)v, (__m128i)v);
  const int32_t levels = _mm_cvtsi128_si32(_mm_packus_epi16(shorts, shorts));
  __builtin_memcpy(to, &levels, sizeof levels);
}

}  // namespace
}  // namespace phonebit::engine::cpu
