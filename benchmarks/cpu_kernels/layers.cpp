#include "layers.h"

#include <random>

namespace bench {

using phonebit::engine::cpu::ConvShape;
using phonebit::engine::cpu::words;

double Layer::macs() const {
  return (double)shape.out_h * shape.out_w * shape.out_c * shape.kernel_h * shape.kernel_w * shape.in_c;
}

namespace {

/// Zeros keep the size of odd kernels of stride 1, as PyTorch pads for stride 2.
Layer same(int size, int in_c, int out_c, int kernel, int stride) {
  const int pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  Layer layer;
  layer.shape = {size, size, in_c, out, out, out_c, kernel, kernel, stride, stride,
                 1,    1,    pad,  pad, pad, pad,   0,      1,      0};
  layer.name = std::to_string(kernel) + "x" + std::to_string(kernel) +
               (stride > 1 ? "s" + std::to_string(stride) : "") + " " + std::to_string(size) + "x" +
               std::to_string(size) + " " + std::to_string(in_c) + "->" + std::to_string(out_c);
  return layer;
}

Layer dense(int size, int in_c, int out_c) {
  Layer layer;
  layer.shape = {size, size, in_c, 1, 1, out_c, size, size, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0};
  layer.name = "dense " + std::to_string(size * size * in_c) + "->" + std::to_string(out_c);
  return layer;
}

}  // namespace

std::vector<Layer> layers() {
  return {same(56, 64, 64, 3, 1),   same(28, 128, 128, 3, 1),   same(14, 256, 256, 3, 1),
          same(7, 512, 512, 3, 1),  same(56, 256, 256, 3, 1),   same(28, 512, 512, 3, 1),
          same(14, 512, 512, 3, 1), same(13, 1024, 1024, 3, 1), same(27, 96, 256, 5, 1),
          same(224, 64, 64, 3, 1),  same(104, 32, 64, 3, 1),    same(208, 16, 32, 3, 1),
          same(56, 16, 16, 3, 1),   same(112, 16, 32, 3, 2),    same(56, 8, 16, 3, 1),
          same(56, 64, 128, 3, 2),  same(28, 128, 256, 3, 2),   same(14, 256, 512, 3, 2),
          same(56, 64, 64, 1, 1),   same(28, 128, 256, 1, 1),   same(14, 256, 512, 1, 1),
          same(7, 512, 1024, 1, 1), dense(7, 512, 4096),        dense(1, 4096, 4096),
          dense(1, 4096, 1000),     dense(1, 512, 1000)};
}

Problem::Problem(const Layer& layer) {
  const ConvShape& s = layer.shape;
  std::mt19937 random(1);
  const int words_in = words(s.in_c);
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words_in;
  const auto fill = [&](std::vector<uint32_t>& bits, size_t count) {
    bits.resize(count);
    for (uint32_t& word : bits) word = random();
  };
  fill(input, (size_t)s.in_h * s.in_w * words_in);
  fill(weights, s.out_c * filter_words);
  if (s.in_c % 32 != 0) {  // one word per pixel or less; tail bits are 0
    const uint32_t channels = (1u << s.in_c) - 1;
    for (uint32_t& word : input) word &= channels;
    for (uint32_t& word : weights) word &= channels;
  }
  for (int c = 0; c < s.out_c; ++c) thresholds.push_back((int)(random() % 41) - 20);
}

}  // namespace bench
