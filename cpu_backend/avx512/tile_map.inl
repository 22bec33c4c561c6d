// The map as the matrix unit reads it: a byte for each bit, in the positions of portable/phase_planes.inl, so
// that tiles are stretches of consecutive bytes. Behind the chunks lies the number of ones of each position, in
// the same order.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

constexpr int kChunk = kTileChannels;  // of a position, and of a tile
constexpr int kTiles = 6;              // tiles of A that are multiplied with one tile of B
constexpr int kMostRows = kTiles * kTileRows;

#include "portable/phase_planes.inl"

/// Where the numbers of ones begin in scratch. The last tiles of a range may read past the last position;
/// what they compute there is thrown away.
size_t ones_offset(const Planes& planes) { return (planes.chunks * planes.chunk + kMostRows) * kChunk; }

size_t scratch_bytes(const ConvShape& s) {
  const Planes planes(s);
  return round_up_64(ones_offset(planes) + (planes.chunk + kMostRows) * sizeof(int32_t));
}

int prepare_rows(const ConvShape& s) { return touched_rows(s); }

/// A part of a row of a phase plane: `count` pixels, every stride_w-th from column in_x of the map on.
struct PixelRun {
  const uint32_t* words;
  size_t step;
  int count;
};

/// Bits of one chunk of channels to bytes 0 and 1. Tail bits are 0 and stay 0.
inline void expand_pixels(const PixelRun& run, int chunk, int channels, char* out) {
  const __m512i one = _mm512_set1_epi8(1);
  const uint32_t* word = run.words + chunk * 2;
  if (channels - chunk * kChunk > 32) {
    for (int i = 0; i < run.count; ++i, word += run.step, out += kChunk) {
      uint64_t bits;
      __builtin_memcpy(&bits, word, sizeof(bits));  // words are aligned to 4 only
      _mm512_store_si512(out, _mm512_maskz_mov_epi8(bits, one));
    }
  } else {
    for (int i = 0; i < run.count; ++i, word += run.step, out += kChunk) {
      _mm512_store_si512(out, _mm512_maskz_mov_epi8(*word, one));
    }
  }
}

inline void count_ones(const PixelRun& run, int words_in, int32_t* out) {
  const uint32_t* word = run.words;
  for (int i = 0; i < run.count; ++i, word += run.step) {
    int64_t ones = words_in % 2 != 0 ? _mm_popcnt_u32(word[words_in - 1]) : 0;
    for (int j = 0; j + 2 <= words_in; j += 2) ones += _mm_popcnt_u64(word[j] | (uint64_t)word[j + 1] << 32);
    out[i] = (int32_t)ones;
  }
}

inline void fill_bytes(__m512i padding, int count, char* out) {
  for (int i = 0; i < count; ++i) _mm512_store_si512(out + (size_t)i * kChunk, padding);
}

inline void fill_ones(int ones, int count, int32_t* out) {
  for (int i = 0; i < count; ++i) out[i] = ones;
}

/// One row of one phase plane: `before` positions of padding, the run, `after` positions of padding.
void prepare_row(const ConvShape& s, const Planes& planes, const PixelRun& run, int before, int after,
                 size_t position, char* scratch) {
  const int padding_bits = s.pad_value == 1 ? s.in_c : 0;
  for (int chunk = 0; chunk < planes.chunks; ++chunk) {
    const int bits = padding_bits - chunk * kChunk;
    const __mmask64 mask = bits >= kChunk ? ~0ull : bits > 0 ? (1ull << bits) - 1 : 0;
    const __m512i padding = _mm512_maskz_set1_epi8(mask, 1);
    char* const out = scratch + (chunk * planes.chunk + position) * kChunk;
    fill_bytes(padding, before, out);
    expand_pixels(run, chunk, s.in_c, out + (size_t)before * kChunk);
    fill_bytes(padding, after, out + (size_t)(before + run.count) * kChunk);
  }
  int32_t* const ones = (int32_t*)(scratch + ones_offset(planes)) + position;
  fill_ones(padding_bits, before, ones);
  count_ones(run, words(s.in_c), ones + before);
  fill_ones(padding_bits, after, ones + before + run.count);
}

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const Planes planes(s);
  const size_t words_in = words(s.in_c);
  for (int y = row_begin; y < row_end; ++y) {
    const int in_y = y - s.pad_top;
    const bool inside = in_y >= 0 && in_y < s.in_h;
    const int columns = planes.columns(s, y);
    for (int phase = 0; phase < s.stride_w && phase < columns; ++phase) {
      // Position i of this plane's row is column phase + i * stride_w of the padded map.
      const auto positions_before = [&](int column) {
        const int room = (column < columns ? column : columns) - phase;
        return room > 0 ? (room + s.stride_w - 1) / s.stride_w : 0;
      };
      const int all = positions_before(columns);
      const int begin = inside ? positions_before(s.pad_left) : all;
      const int end = inside ? positions_before(s.pad_left + s.in_w) : all;
      const int in_x = phase + begin * s.stride_w - s.pad_left;
      const PixelRun run = {inside ? input + ((size_t)in_y * s.in_w + in_x) * words_in : input,
                            words_in * s.stride_w, end - begin};
      prepare_row(s, planes, run, begin, all - end, planes.row(s, y) + (size_t)phase * planes.plane,
                  (char*)scratch);
    }
  }
}
