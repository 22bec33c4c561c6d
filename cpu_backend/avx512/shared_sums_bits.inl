// Between bits of lanes and bytes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

PHONEBIT_INLINE __m512i interleave_low(__m512i a, __m512i b) { return _mm512_unpacklo_epi8(a, b); }
PHONEBIT_INLINE __m256i interleave_low(__m256i a, __m256i b) { return _mm256_unpacklo_epi8(a, b); }
PHONEBIT_INLINE __m512i interleave_high(__m512i a, __m512i b) { return _mm512_unpackhi_epi8(a, b); }
PHONEBIT_INLINE __m256i interleave_high(__m256i a, __m256i b) { return _mm256_unpackhi_epi8(a, b); }

/// Bit i of a byte is the parity of its bits that byte 7 - i of the map has.
PHONEBIT_INLINE __m512i map_bits(__m512i v, long long map) {
  return _mm512_gf2p8affine_epi64_epi8(v, _mm512_set1_epi64(map), 0);
}
PHONEBIT_INLINE __m256i map_bits(__m256i v, long long map) {
  return _mm256_gf2p8affine_epi64_epi8(v, _mm256_set1_epi64x(map), 0);
}

/// Bit i of byte k of each 64 bits is bit k of byte 7 - i.
PHONEBIT_INLINE __m512i transpose_bits(__m512i v) {
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64((long long)0x8040201008040201), v, 0);
}
PHONEBIT_INLINE __m256i transpose_bits(__m256i v) {
  return _mm256_gf2p8affine_epi64_epi8(_mm256_set1_epi64x((long long)0x8040201008040201), v, 0);
}

/// The order in which byte 7 - j of 64 bits i is byte i of 64 bits j.
struct ByteOrder {
  alignas(64) uint8_t from[64];

  constexpr ByteOrder() : from{} {
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) from[8 * i + 7 - j] = (uint8_t)(8 * j + i);
  }
};
constexpr ByteOrder kByteOrder;

/// Byte i has bit i of eight rows of words, `step` apart: those of 64 positions, or of the `words_left` that there are.
PHONEBIT_INLINE __m512i bytes_of_positions(const uint32_t* from, size_t step, int words_left) {
  const auto bits = [&](int row) PHONEBIT_LAMBDA_INLINE {
    return words_left > 1 ? load<long long>(from + row * step) : (long long)from[row * step];
  };
  const __m512i eight = step == 2 && words_left > 1 ? _mm512_loadu_si512(from)
                                                    : _mm512_set_epi64(bits(7), bits(6), bits(5), bits(4),
                                                                       bits(3), bits(2), bits(1), bits(0));
  return transpose_bits(_mm512_permutexvar_epi8(_mm512_load_si512(kByteOrder.from), eight));
}

/// In each 128 bits of 2^k vectors, byte j of v[i] goes to byte kVectors j + i of all of them.
template <int kVectors, class V>
PHONEBIT_INLINE void transpose_bytes(V (&v)[kVectors]) {
  unroll<kVectors == 16 ? 4 : 3>([&](auto) PHONEBIT_LAMBDA_INLINE {
    V from[kVectors];
    unroll<kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE { from[i] = v[i]; });
    unroll<kVectors / 2>([&](auto i) PHONEBIT_LAMBDA_INLINE {
      v[2 * i] = interleave_low(from[i], from[i + kVectors / 2]);
      v[2 * i + 1] = interleave_high(from[i], from[i + kVectors / 2]);
    });
  });
}

/// 8 digits of each lane to its number. Byte k of the digits becomes 8 numbers of row[k % 16 / 2].
template <class V>
PHONEBIT_INLINE void turn_digits(V (&row)[8]) {
  V v[8];
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE { v[i] = row[7 - i]; });
  transpose_bytes(v);
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE { row[i] = transpose_bits(v[i]); });
}
