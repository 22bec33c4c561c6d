// Sums of planes, one plane per digit, and what makes bytes of planes and planes of bytes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

constexpr int kUnit = 8;  // planes that are added at once

template <int kTable>
PHONEBIT_INLINE __m512i ternary(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi64(a, b, c, kTable);
}
template <int kTable>
PHONEBIT_INLINE __m256i ternary(__m256i a, __m256i b, __m256i c) {
  return _mm256_ternarylogic_epi64(a, b, c, kTable);
}

/// sum + a + b = the new sum + 2 carries; kInverted: of ~a and ~b.
template <bool kInverted = false, class V>
PHONEBIT_INLINE V add(V& sum, V a, V b) {
  sum = ternary<0x96>(sum, a, b);
  return ternary<kInverted ? 0x17 : 0xd4>(a, b, sum);  // where a and b differ, the old sum
}
template <class V>
PHONEBIT_INLINE V add(V& sum, V a) {
  const V carry = sum & a;
  sum ^= a;
  return carry;
}

PHONEBIT_INLINE bool is_zero(__m512i v) { return _mm512_test_epi64_mask(v, v) == 0; }
PHONEBIT_INLINE bool is_zero(__m256i v) { return _mm256_testz_si256(v, v); }

/// Adds the carries of digit kFrom; few sums have more than 8 digits.
template <int kFrom, int kDigits, class V>
PHONEBIT_INLINE void ripple(V (&sum)[kDigits], V carry) {
  const auto at = [&](int digit) PHONEBIT_LAMBDA_INLINE {
    if (digit + 1 < kDigits)
      carry = add(sum[digit], carry);
    else
      sum[digit] ^= carry;
  };
  unroll<8 - kFrom>([&](int i) PHONEBIT_LAMBDA_INLINE { at(kFrom + i); });
  if (kDigits == 8 || is_zero(carry)) return;
  unroll<kDigits - 8>([&](int i) PHONEBIT_LAMBDA_INLINE { at(8 + i); });
}

/// kStep: bytes from one entry's plane to that of the next number; the same below.
template <int kStep, bool kInverted, int kDigits, class V>
PHONEBIT_INLINE V add_unit(V (&sum)[kDigits], const uint8_t* planes, const uint16_t* list) {
  const auto x = [&](int i) PHONEBIT_LAMBDA_INLINE { return load<V>(planes + (size_t)list[i] * kStep); };
  const auto fours = [&](int i) PHONEBIT_LAMBDA_INLINE {
    const V a = add<kInverted>(sum[0], x(i), x(i + 1));
    const V b = add<kInverted>(sum[0], x(i + 2), x(i + 3));
    return add(sum[1], a, b);
  };
  const V a = fours(0), b = fours(4);
  return add(sum[2], a, b);
}

/// Bytes by which lists are asked for ahead: they come from beyond the second cache once an image.
constexpr int kListAhead = 512;

template <int kStep, bool kInverted, int kDigits, class V>
PHONEBIT_INLINE const uint16_t* add_list(V (&sum)[kDigits], const uint8_t* planes, const uint16_t* list) {
  int units = *list++;
  for (; units >= 4; units -= 4, list += 4 * kUnit) {
    _mm_prefetch((const char*)list + kListAhead, _MM_HINT_T0);
    const V a = add_unit<kStep, kInverted>(sum, planes, list);
    const V b = add_unit<kStep, kInverted>(sum, planes, list + kUnit);
    const V ab = add(sum[3], a, b);
    const V c = add_unit<kStep, kInverted>(sum, planes, list + 2 * kUnit);
    const V d = add_unit<kStep, kInverted>(sum, planes, list + 3 * kUnit);
    const V cd = add(sum[3], c, d);
    ripple<5>(sum, add(sum[4], ab, cd));
  }
  for (; units > 0; --units, list += kUnit) ripple<3>(sum, add_unit<kStep, kInverted>(sum, planes, list));
  return list;
}

template <int kDigits, class V>
struct ClassSums {
  V differing[kDigits], all[kDigits];  // the first and last filter differ
};

template <int kStep, int kDigits, class V>
PHONEBIT_NOINLINE const uint16_t* add_classes(const uint8_t* planes, const uint16_t* list, int classes,
                                              ClassSums<kDigits, V>* to) {
  for (int i = 0; i < classes; ++i, ++to) {
    V sum[kDigits];
    unroll<kDigits>([&](int d) PHONEBIT_LAMBDA_INLINE { sum[d] = V{}; });
    list = add_list<kStep, false>(sum, planes, list);
    list = add_list<kStep, true>(sum, planes, list);
    unroll<kDigits>([&](int d) PHONEBIT_LAMBDA_INLINE { to->differing[d] = sum[d]; });
    list = add_list<kStep, false>(sum, planes, list);
    list = add_list<kStep, true>(sum, planes, list);
    unroll<kDigits>([&](int d) PHONEBIT_LAMBDA_INLINE { to->all[d] = sum[d]; });
  }
  return list;
}

/// Digit `at`, a constant, of the sum of 2^kLevel numbers of kDigits digits, after all lower ones; 2^kLevel - 1 carries
/// are kept.
template <int kLevel, int kDigits, class V, class Operand>
PHONEBIT_INLINE V sum_digit(int at, V* carries, const Operand& operand, int first) {
  if constexpr (kLevel == 0) {
    return at < kDigits ? operand(first)[at] : V{};
  } else {
    constexpr int kHalf = 1 << (kLevel - 1);
    V& carry = carries[2 * kHalf - 2];
    if (at >= kDigits + kLevel) return V{};
    if (at == kDigits + kLevel - 1) return carry;
    const V a = sum_digit<kLevel - 1, kDigits>(at, carries, operand, first);
    const V b = sum_digit<kLevel - 1, kDigits>(at, carries + kHalf - 1, operand, first + kHalf);
    V sum = at == 0 ? V{} : carry;
    if (at == 0) {
      carry = a & b;
      return a ^ b;
    }
    carry = add(sum, a, b);
    return sum;
  }
}

/// Keeps digits: 8 low ones, then the others.
template <class V>
struct KeptNumber {
  V *low, *high;
  PHONEBIT_INLINE KeptNumber(V* eight, V* others) : low(eight), high(others) {}
  PHONEBIT_INLINE V& digit(int i) const { return i < 8 ? low[i] : high[i - 8]; }
  PHONEBIT_INLINE void put(int i, V v) const { digit(i) = v; }
};

/// Where the digits of a channel go: 8 low ones, and kHigh.
template <int kHigh, class V>
struct DigitRows {
  static constexpr int kDigits = 8 + kHigh;
  V low[kChannelBlock][8];
  V high[kHigh == 4 ? kChannelBlock / 2 : kChannelBlock][8];

  PHONEBIT_INLINE KeptNumber<V> number(int channel) {
    return {low[channel], kHigh == 4 ? high[channel % 32] + channel / 32 * 4 : high[channel]};
  }
  PHONEBIT_INLINE KeptNumber<V> first_number(int channel) { return number(channel); }
};

/// Of the first filter: the sum of all classes. Of another one: that, less twice the sum of the classes in which it
/// differs from the first.
template <int kFilters, class Digits, int kDigits, class V>
PHONEBIT_NOINLINE void put_digits(const ClassSums<kDigits, V>* sums, int channel, Digits& digits) {
  constexpr int kLevel = kFilters - 2;
  constexpr int kAll = Digits::kDigits;
  auto total = digits.first_number(channel);
  {
    V carries[(1 << kLevel) - 1];
    const auto all = [&](int i) PHONEBIT_LAMBDA_INLINE { return sums[i].all; };
    unroll<kAll>(
        [&](int d) PHONEBIT_LAMBDA_INLINE { total.put(d, sum_digit<kLevel, kDigits>(d, carries, all, 0)); });
  }
  const auto subtract = [&](int f, auto level, const auto& operand) PHONEBIT_LAMBDA_INLINE {
    auto number = digits.number(channel + f);
    V carries[1 << level];
    V carry = ~V{};  // -x = ~x + 1
    number.put(0, total.digit(0));
    unroll<kAll - 1>([&](int d) PHONEBIT_LAMBDA_INLINE {
      const V t = total.digit(d + 1);
      const V a = sum_digit<level, kDigits>(d, carries, operand, 0);
      number.put(d + 1, ternary<0x69>(t, a, carry));
      carry = ternary<0xb2>(t, a, carry);
    });
  };
  unroll<kLevel>([&](int f) PHONEBIT_LAMBDA_INLINE {
    // Class i of those with bit f.
    subtract(f + 1, Index<kLevel - 1>{}, [&](int i) PHONEBIT_LAMBDA_INLINE {
      return sums[(i >> f << (f + 1)) | 1 << f | (i & ((1 << f) - 1))].all;
    });
  });
  subtract(kFilters - 1, Index<kLevel>{}, [&](int i) PHONEBIT_LAMBDA_INLINE { return sums[i].differing; });
}

// Between bits of lanes and bytes.

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
    unroll<kVectors>([&](int i) PHONEBIT_LAMBDA_INLINE { from[i] = v[i]; });
    unroll<kVectors / 2>([&](int i) PHONEBIT_LAMBDA_INLINE {
      v[2 * i] = interleave_low(from[i], from[i + kVectors / 2]);
      v[2 * i + 1] = interleave_high(from[i], from[i + kVectors / 2]);
    });
  });
}

/// 8 digits of each lane to its number. Byte k of the digits becomes 8 numbers of row[k % 16 / 2].
template <class V>
PHONEBIT_INLINE void turn_digits(V (&row)[8]) {
  V v[8];
  unroll<8>([&](int i) PHONEBIT_LAMBDA_INLINE { v[i] = row[7 - i]; });
  transpose_bytes(v);
  unroll<8>([&](int i) PHONEBIT_LAMBDA_INLINE { row[i] = transpose_bits(v[i]); });
}
