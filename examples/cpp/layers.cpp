// A binary network chained layer by layer, as in figure 3 of the PhoneBit paper: each convolution has its
// batch normalisation and its sign fused. The weights are noise; put your own there.
//
//   layers [model.pbit]    with a path, the network is also saved
#include <phonebit/phonebit_layers.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

using phonebit::BatchNorm;
using phonebit::Conv2d;
using phonebit::Dense;
using phonebit::Pool;
using phonebit::Weights;

namespace {

std::vector<float> noise(size_t count, float low, float high) {
  static std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(low, high);
  std::vector<float> result(count);
  for (float& number : result) number = numbers(random);
  return result;
}

/// What training leaves of one batch normalisation.
struct Norm {
  explicit Norm(size_t channels)
      : gamma(noise(channels, -1, 1)),
        beta(noise(channels, -1, 1)),
        mean(noise(channels, -9, 9)),
        variance(noise(channels, 1, 99)) {}
  operator BatchNorm() const { return {gamma, beta, mean, variance}; }
  std::vector<float> gamma, beta, mean, variance;
};

int fail(const phonebit::Error& error) {
  std::fprintf(stderr, "%s\n", error.text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  // (1) Weights, [out channels][height][width][in channels], of which the signs count
  const auto w1 = noise(64 * 3 * 3 * 3, -1, 1), w2 = noise(128 * 3 * 3 * 64, -1, 1);
  const auto w3 = noise(10 * 8 * 8 * 128, -1, 1), b3 = noise(10, -1, 1);
  const std::vector<float> s3(10, 1.0f / 128);
  const Norm bn1(64), bn2(128);

  // (2) The network
  phonebit::Builder net("layers");
  const auto image = net.input("image", phonebit::Type::u8, 32, 32, 3);
  // layer 1
  const auto conv1 = net.conv2d(image, Conv2d(64, 3, Weights::signs(w1)).padding(1).norm(bn1).sign());
  const auto pool1 = net.max_pool(conv1, Pool(2));
  // layer 2
  const auto conv2 = net.conv2d(pool1, Conv2d(128, 3, Weights::signs(w2)).padding(1).norm(bn2).sign());
  const auto pool2 = net.max_pool(conv2, Pool(2));
  // scores
  net.output(net.softmax(net.dense(pool2, Dense(10, Weights::signs(w3)).scale(s3).bias(b3))));

  // (3) Forward
  auto network = net.network();
  if (!network) return fail(network.error());
  const std::vector<uint8_t> pixels(network->inputs()[0].bytes, 128);
  std::vector<float> scores(network->outputs()[0].elements());
  const auto done = network->forward({pixels}, {scores});
  if (!done) return fail(done.error());
  for (const float score : scores) std::printf("%8.4f\n", score);

  if (argc > 1) {
    const auto saved = net.save(argv[1]);
    if (!saved) return fail(saved.error());
  }
  return 0;
}
