// Planes of the map: vectors with a bit for each pixel.
//
// Scratch holds groups of 8 pixels as bytes: [y of the padded map][column of the window][group][channel]. A group's
// pixels begin at x = 8 group + column. Byte i of a tile's plane is group first + i of such bytes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "portable/padded_map.inl"
#include "shared_sums_bits.inl"
#include "shared_sums_shape.inl"

size_t scratch_bytes(const ConvShape& s) {
  return round_up_64((size_t)touched_rows(s) * s.kernel_w * row_groups(s) * plane_channels(s));
}

int prepare_rows(const ConvShape& s) { return touched_rows(s); }

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const int words_in = words(s.in_c), groups = row_groups(s);
  const int columns = groups * kGroupPixels + s.kernel_w - 1;
  alignas(64) uint32_t row[kMaxRowBytes / sizeof(uint32_t)];
  char* out = (char*)scratch + (size_t)row_begin * s.kernel_w * groups * plane_channels(s);
  for (int y = row_begin; y < row_end; ++y) {
    pad_row(s, input, y, columns, row);
    for (int x = 0; x < s.kernel_w; ++x) {
      for (int g = 0; g < groups; ++g) {
        const uint32_t* from = row + (g * kGroupPixels + x) * words_in;
        for (int i = 0; i < words_in; i += 2, from += 2, out += 64)
          _mm512_store_si512(out, bytes_of_positions(from, words_in, words_in - i));
      }
    }
  }
}

/// The planes of a tile of at most `tile` groups from `first` on, [column][channel], and the constants.
PHONEBIT_NOINLINE void make_planes(const ConvShape& s, const char* bytes, int first, int tile,
                                   uint8_t* planes) {
  const int groups = row_groups(s), last = touched_rows(s) * groups - 1;
  const int step = plane_step(s), end = plane_bytes(s, tile), channels = plane_channels(s);
  for (int begin = 0; begin < end; begin += 16) {
    const char* from[16];
    for (int i = 0; i < 16; ++i) {
      const int g = first + begin + i < last ? first + begin + i : last;
      from[i] = bytes + ((size_t)(g / groups) * s.kernel_w * groups + g % groups) * channels;
    }
    const bool is_half = end - begin < 16;  // what is beyond may be the next plane
    uint8_t* to = planes + begin;
    for (int x = 0; x < s.kernel_w; ++x) {
      for (int c = 0; c < channels; c += 64) {
        const size_t offset = (size_t)x * groups * channels + c;
        __m512i v[16];
        unroll<16>([&](auto i) PHONEBIT_LAMBDA_INLINE { v[i] = _mm512_load_si512(from[i] + offset); });
        transpose_bytes(v);
        unroll<4>([&](auto part) PHONEBIT_LAMBDA_INLINE {
          unroll<16>([&](auto i) PHONEBIT_LAMBDA_INLINE {
            const __m128i plane = _mm512_extracti32x4_epi32(v[i], part);
            if (is_half)
              _mm_storel_epi64((__m128i*)to, plane);
            else
              _mm_storeu_si128((__m128i*)to, plane);
            to += step;
          });
        });
      }
    }
  }
  __builtin_memset(planes + constants_offset(s), 0, 64);
  __builtin_memset(planes + constants_offset(s) + 64, 0xff, 64);
}
