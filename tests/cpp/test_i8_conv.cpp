// Convolutions with 8-bit weights of every supported instruction set, against plain loops: inputs quantized
// to integers, and inputs that are integers already, where integer sums must be the bits of float32 ones.
// All instruction sets see the same cases.
#include <algorithm>

#include "kernel_check.h"

namespace check {
namespace {

ConvShape random_window(Random& random) {
  ConvShape s =
      random_shape(random, pick_one(random, {1, 2, 3, 4, 7, 33, 64, 130}), pick_channels(random), 14);
  if (random() % 6 == 0) {  // dense
    s = ConvShape{};
    s.in_h = s.kernel_h = pick(random, 1, 7), s.in_w = s.kernel_w = pick(random, 1, 7);
    s.in_c = pick(random, 1, 300), s.out_c = pick(random, 1, 200), s.out_h = s.out_w = 1;
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  }
  return s;
}

/// Often only the largest ones, where 16-bit lanes would overflow first.
std::vector<int8_t> random_bytes(Random& random, size_t count) {
  std::vector<int8_t> bytes(count);
  const bool extreme = random() % 3 == 0;
  for (int8_t& w : bytes) w = (int8_t)(extreme ? (random() % 8 ? 127 : -127) : pick(random, -127, 127));
  return bytes;
}

/// The chain of for_each_tap over all outputs: visit(output, x, weight) where x is 0 in the padding.
template <class Visit>
void for_each_product(const ConvShape& s, const std::vector<float>& input, const std::vector<int8_t>& weights,
                      const Visit& visit) {
  for (int p = 0; p < s.out_h * s.out_w; p++) {
    for (int o = 0; o < s.out_c; o++) {
      const int8_t* filter = weights.data() + (size_t)o * s.kernel_h * s.kernel_w * s.in_c;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
        for (int c = 0; c < s.in_c; c++)
          visit(p * s.out_c + o, from < 0 ? 0.0f : input[(size_t)from * s.in_c + c],
                filter[((size_t)ky * s.kernel_w + kx) * s.in_c + c]);
      });
    }
  }
}

void run_in_parts(Random& random, const I8ConvKernel& kernel, const ConvShape& s, const void* packed,
                  const std::vector<float>& input, float multiplier, float scale, const Epilogue& epilogue) {
  AlignedBytes scratch(kernel.scratch_bytes(s));
  const std::vector<int> rows = random_cuts(random, kernel.prepare_rows(s));
  for (size_t i = 0; i + 1 < rows.size(); i++) {
    if (rows[i] < rows[i + 1])
      kernel.prepare_input(s, input.data(), multiplier, scratch.data, rows[i], rows[i + 1]);
  }
  const std::vector<int> pixels = random_cuts(random, s.out_h * s.out_w);
  const std::vector<int> blocks = random_cuts(random, (s.out_c + kChannelBlock - 1) / kChannelBlock);
  for (size_t i = 0; i + 1 < pixels.size(); i++) {
    for (size_t j = 0; j + 1 < blocks.size(); j++)
      kernel.run(s, packed, scale, scratch.data, {pixels[i], pixels[i + 1], blocks[j], blocks[j + 1]},
                 epilogue);
  }
}

void quantized_inputs(const Isa& isa, Random& random) {
  const I8ConvKernel& kernel = *isa.i8_conv;
  const ConvShape s = random_window(random);
  std::vector<float> input = floats(random, (size_t)s.in_h * s.in_w * s.in_c);
  if (random() % 4 == 0) {
    for (float& x : input) x = random() % 2 ? 2.5f : -2.5f;  // every byte is 127 or -127
  }
  float largest = 0;
  for (const float x : input) largest = std::max(largest, std::fabs(x));
  REQUIRE(kernel.largest(input.data(), input.size()) == largest);
  // Sometimes too large, so that values must be limited; and halves, which go to even.
  const float multiplier = pick_one(random, {1, 1, 2}) * (random() % 4 ? 127 / largest : 50.5f);
  const float scale = pick_float(random);
  const std::vector<int8_t> weights =
      random_bytes(random, (size_t)s.out_c * s.kernel_h * s.kernel_w * s.in_c);
  const std::vector<float> scales = floats(random, (size_t)s.out_c);
  const int pixels = s.out_h * s.out_w;
  const RandomEpilogue epilogue(random, pixels, s.out_c);
  INFO(describe(s), epilogue.text);
  std::vector<int> sums((size_t)pixels * s.out_c);
  for_each_product(s, input, weights, [&](int at, float x, int weight) {
    sums[at] += (int)std::nearbyint(std::clamp(x * multiplier, -127.0f, 127.0f)) * weight;
  });
  std::vector<float> main(sums.size());
  for (size_t i = 0; i < sums.size(); i++) main[i] = (float)sums[i] * (scales[i % s.out_c] * scale);
  AlignedBytes packed(kernel.packed_bytes(s));
  kernel.pack_weights(s, weights.data(), scales.data(), packed.data);
  Outputs out(random, pixels, s.out_c);
  run_in_parts(random, kernel, s, packed.data, input, multiplier, scale, epilogue.make(out));
  compare(out, epilogue, main);
}

void integer_inputs(const Isa& isa, Random& random) {
  const ConvShape s = random_window(random);
  std::vector<float> input((size_t)s.in_h * s.in_w * s.in_c);
  const bool is_sign = random() % 2;
  for (float& x : input) x = is_sign ? (random() % 2 ? 1.0f : -1.0f) : (float)pick(random, -8, 8);
  const std::vector<int8_t> weights =
      random_bytes(random, (size_t)s.out_c * s.kernel_h * s.kernel_w * s.in_c);
  const int pixels = s.out_h * s.out_w;
  const RandomEpilogue epilogue(random, pixels, s.out_c);
  INFO(describe(s), epilogue.text);
  std::vector<float> main((size_t)pixels * s.out_c);
  for_each_product(s, input, weights,
                   [&](int at, float x, int weight) { main[at] = std::fma(x, (float)weight, main[at]); });
  AlignedBytes packed(isa.i8_conv->packed_bytes(s));
  isa.i8_conv->pack_weights(s, weights.data(), nullptr, packed.data);
  Outputs out(random, pixels, s.out_c);
  run_in_parts(random, *isa.i8_conv, s, packed.data, input, 1, 1, epilogue.make(out));
  compare(out, epilogue, main);
}

TEST_CASE("quantized inputs") { for_each_isa(&Isa::i8_conv, test_cases(150), quantized_inputs); }
TEST_CASE("integer inputs") { for_each_isa(&Isa::i8_conv, test_cases(150), integer_inputs); }

}  // namespace
}  // namespace check
