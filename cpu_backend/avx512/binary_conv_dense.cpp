// @kernel   bgemv_b32__avx512vpopcnt   dense layer: one output pixel whose window is the whole map
// @math     d = sum over words of popcount(x xor w);  acc = K - 2 d
// @in       packed bits, K of them in one run
// @out      packed bits, or one float32 row for the epilogue
// @weights  [Cout/64][K/32][64 x u32], read once, front to back
// @tune     PHONEBIT_STREAM_AHEAD_BYTES, portable/weight_stream.inl
// @source   own
//
// Every weight is used once, so this moves memory; registers are never short and nothing is tiled.
#include "select.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {

#include "popcount_layout.inl"
#include "portable/epilogue.inl"
#include "portable/weight_stream.inl"

size_t packed_bytes(const ConvShape& s) { return head_bytes(s, 1) + block_weights_bytes(s) * block_count(s); }

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  pack_limits(s, weights, thresholds, packed);
  interleave_filters(s, weights, (uint32_t*)PackedLayer(s, packed).weights);
}

size_t no_scratch(const ConvShape&) { return 0; }
int no_rows(const ConvShape&) { return 0; }
void nothing_to_prepare(const ConvShape&, const uint32_t*, void*, int, int) {}

void run(const ConvShape& s, const void* packed, const uint32_t* input, const void*, const OutputRange& range,
         const AccumulatorSink& sink) {
  if (range.pixel_begin == range.pixel_end) return;
  const PackedLayer layer(s, packed);
  const int input_words = s.kernel_h * s.kernel_w * words(s.in_c);
  for (int block = range.block_begin; block < range.block_end; ++block) {
    const char* weights = layer.weights + block_weights_bytes(s) * block;
    __m512i counts[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                         _mm512_setzero_si512()};
    for (int i = 0; i < input_words; ++i, weights += sizeof(uint32_t) * kChannelBlock) {
      ask_ahead<sizeof(uint32_t) * kChannelBlock>(weights);
      const __m512i x = _mm512_set1_epi32((int)input[i]);
      unroll<4>([&](int q) PHONEBIT_LAMBDA_INLINE {
        const __m512i different = _mm512_xor_si512(x, _mm512_load_si512(weights + 64 * q));
        counts[q] = _mm512_add_epi32(counts[q], _mm512_popcnt_epi32(different));
      });
    }
    const int channels = block_channels(s, block);
    if (sink.threshold_bits != nullptr) {
      store_bits(counts, layer.block_head(block), sink.threshold_bits + block * kChannelBlock / 32,
                 words(channels));
    } else {
      alignas(64) float values[kChannelBlock];
      store_values(counts, layer.block_head(block), values);
      apply_epilogue(*sink.epilogue, values, 0, 1, block * kChannelBlock, channels);
    }
  }
}

}  // namespace

extern const BinaryConvKernel kDenseConv_avx512 = {
    "bgemv_b32__avx512vpopcnt", packed_bytes, pack_weights, no_scratch, no_rows, nothing_to_prepare, run};

}  // namespace phonebit::engine::cpu
