// Classifies one image with a .pbit file, and prints the five best classes.
//
//   classify model.pbit [image.raw [device]]
//
// The image holds the bytes that the network's input wants (height * width * channels levels, or float32
// numbers); without one, noise is classified.
#include <phonebit/phonebit.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

std::vector<char> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Bytes that are levels, and the halves of floats near 1 as well.
std::vector<char> noise(size_t bytes) {
  std::vector<char> content(bytes);
  std::mt19937 random(1);
  for (char& byte : content) byte = static_cast<char>(random() % 64);
  return content;
}

void print_best(const std::vector<float>& scores, const std::vector<std::string>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t place = 0; place < std::min<size_t>(5, order.size()); ++place) {
    const size_t at = order[place];
    const std::string label = at < labels.size() ? labels[at] : "class " + std::to_string(at);
    std::printf("%8.4f  %s\n", scores[at], label.c_str());
  }
}

int fail(const phonebit::Error& error) {
  std::fprintf(stderr, "%s\n", error.text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: classify model.pbit [image.raw [device]]\n");
    return 2;
  }
  const auto options = phonebit::Options().device(argc > 3 ? argv[3] : "auto");
  auto network = phonebit::Network::load(argv[1], options);
  if (!network) return fail(network.error());

  const std::vector<char> image = argc > 2 ? read_file(argv[2]) : noise(network->inputs()[0].bytes);
  std::vector<float> scores(network->outputs()[0].elements());
  const auto done = network->forward({image}, {scores});
  if (!done) return fail(done.error());

  std::printf("%s on %s\n", argv[1], network->device().c_str());
  print_best(scores, network->labels());
  return 0;
}
