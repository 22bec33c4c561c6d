// @kernel   bconv2d_b32__sme2bmopa   binary convolution by outer products, threshold or epilogue fused
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits, rearranged in scratch to [word][position] (phase_planes.inl)
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][word, tap][64 x u32], inverted
// @requires SME2; streaming vectors of any length
// @source   own
//
// BMOPA reads a word of each of L pixels and one of each of L filters, and adds to L x L sums of 32 bits
// how many of their bits are *equal*: 8192 MAC an instruction for vectors of 512 bits (L = 16). Of inverted
// filters those bits are equal that differ, and tails (0 in the map, inverted 1 in the filter) count
// nothing, so that limits and bases are those of the other kernels.
//
// The four tiles of sums are L pixels x 4 L filters: a step is one load of pixels, one of filters, and four
// outer products. For 512 bits the four compares of a pixel make 64 predicate bits, the very bytes of the
// output. Longer vectors, which no processor has, are used as far as a block goes.
#include "neon/shared.h"
#include "outer_products.h"
#include "select.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kChunk = 32;  // channels of a position
#include "phase_planes.inl"

/// Positions between entering and leaving streaming mode: whole tiles of any processor.
constexpr int kBatchPositions = kOuterProductPixels;

/// Packed: [entries of shared.h][steps][weights].
uint32_t* steps_of(const ConvShape& s, const void* packed) {
  return (uint32_t*)((char*)packed + neon_entries_bytes(s));
}

size_t packed_bytes(const ConvShape& s) {
  const size_t weights = (size_t)Planes(s).steps() * (1 + (words(s.out_c) + 1) / 2 * kChannelBlock);
  return neon_entries_bytes(s) + sizeof(uint32_t) * (weights + sme2::kSlackWords);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  neon_pack_entries(s, weights, thresholds, false, packed);
  const Planes planes(s);
  const int step_count = planes.steps();
  uint32_t* steps = steps_of(s, packed);
  for (int i = 0; i < step_count; ++i) {
    const int chunk = i / planes.taps, tap = i % planes.taps;
    steps[i] = (uint32_t)planes.step(s, chunk, tap);
    // Filters that do not exist have limit 0.
    for (int c = 0; c < s.out_c; ++c) {
      uint32_t* of_block = steps + step_count + (size_t)c / kChannelBlock * step_count * kChannelBlock;
      of_block[i * kChannelBlock + c % kChannelBlock] =
          ~weights[(size_t)c * step_count + tap * planes.chunks + chunk];
    }
  }
}

size_t scratch_bytes(const ConvShape& s) {
  const Planes planes(s);
  return round_up_64(sizeof(uint32_t) * (planes.chunks * planes.chunk + sme2::kSlackWords));
}

int prepare_rows(const ConvShape& s) { return touched_rows(s); }

/// Two words of each of four pixels, `step` words apart, to two rows of positions.
PHONEBIT_INLINE void take_four(const uint32_t* from, size_t step, uint32_t* first, uint32_t* second) {
  const uint32x4_t a = vcombine_u32(vld1_u32(from), vld1_u32(from + step));
  const uint32x4_t b = vcombine_u32(vld1_u32(from + 2 * step), vld1_u32(from + 3 * step));
  vst1q_u32(first, vuzp1q_u32(a, b));
  vst1q_u32(second, vuzp2q_u32(a, b));
}

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const Planes planes(s);
  const int words_in = planes.chunks;
  const size_t step = (size_t)words_in * s.stride_w;
  for (int y = row_begin; y < row_end; ++y) {
    const int in_y = y - s.pad_top, columns = planes.columns(s, y);
    const bool row_inside = in_y >= 0 && in_y < s.in_h;
    for (int phase = 0; phase < s.stride_w; ++phase) {
      uint32_t* out = (uint32_t*)scratch + planes.row(s, y) + (size_t)phase * planes.plane;
      for (int column = phase, count; column < columns; column += count * s.stride_w, out += count) {
        const int x = column - s.pad_left;
        const bool inside = row_inside && x >= 0 && x < s.in_w;
        const uint32_t* from = input + ((size_t)in_y * s.in_w + x) * words_in;
        count = inside && words_in > 1 && x + 3 * s.stride_w < s.in_w ? 4 : 1;
        for (int word = 0; word < words_in; ++word) {
          uint32_t* to = out + word * planes.chunk;
          if (count == 4) {
            if (word == words_in - 1) --word, to -= planes.chunk;  // an odd one out: with the word before it
            take_four(from + word, step, to, to + planes.chunk);
            ++word;
          } else if (inside) {
            *to = from[word];
          } else {
            const uint32_t last = s.in_c % 32 != 0 && word == words_in - 1 ? (1u << s.in_c % 32) - 1 : ~0u;
            *to = s.pad_value == 1 ? last : 0;
          }
        }
      }
    }
  }
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  const Planes planes(s);
  const BorderTable& borders = *(const BorderTable*)packed;
  alignas(64) float values[kBatchPositions][kChannelBlock];
  sme2::MapPixel pixels[kBatchPositions + 1];
  sme2::OuterProducts job;
  job.steps = steps_of(s, packed);
  job.step_count = planes.steps();
  job.weights = job.steps + job.step_count;
  job.entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  job.block_entries = (int64_t)borders.count() * kChannelBlock;
  job.pixels = pixels;
  job.bits_stride = sink.pixel_words * sizeof(uint32_t);
  job.values = values[0];
  const bool wants_bits = sink.threshold_bits != nullptr;
  const int blocks_at_once = wants_bits ? range.block_end - range.block_begin : 1;
  for (int first = range.pixel_begin, count; first < range.pixel_end; first += count) {
    int y = first / s.out_w, x = first % s.out_w;
    const int begin = y * planes.pitch + x;
    for (count = 0; first + count < range.pixel_end; ++count) {
      const int position = y * planes.pitch + x - begin;
      if (position >= kBatchPositions) break;
      pixels[count] = {position, borders.class_of(s, y, x) * kChannelBlock};
      if (++x == s.out_w) x = 0, ++y;
    }
    pixels[count].position = INT32_MAX;
    job.positions = pixels[count - 1].position + 1;
    job.map = (const uint32_t*)scratch + begin;
    job.bits = wants_bits ? (uint8_t*)(sink.threshold_bits + (size_t)first * sink.pixel_words) : nullptr;
    for (int block = range.block_begin; block < range.block_end; block += blocks_at_once) {
      const int end = (block + blocks_at_once) * kChannelBlock, last = words(s.out_c) * 32;
      job.channel_begin = block * kChannelBlock;
      job.channel_end = end < last ? end : last;
      sme2::compute(job);
      const int rest = s.out_c - job.channel_begin;
      if (!wants_bits)
        apply_epilogue(*sink.epilogue, values[0], first, count, job.channel_begin,
                       rest < kChannelBlock ? rest : kChannelBlock);
    }
  }
}

}  // namespace

extern const BinaryConvKernel kOuterProductConv_sme2 = {
    "bconv2d_b32__sme2bmopa", packed_bytes, pack_weights, scratch_bytes, prepare_rows, prepare_input, run};

}  // namespace phonebit::engine::cpu
