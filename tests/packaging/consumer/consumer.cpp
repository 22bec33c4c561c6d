// Prints the bits of a network's first output for an input of bytes 0, 7, 14, ...: consumer FILE.pbit
#include <phonebit/phonebit.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

int main(int, char** arguments) {
  auto network = phonebit::Network::load(arguments[1], phonebit::Options().device("cpu").threads(1));
  if (!network) return std::fprintf(stderr, "%s\n", network.error().text.c_str()), 1;
  std::vector<uint8_t> image(network->inputs()[0].bytes);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(7 * i);
  std::vector<float> scores(network->outputs()[0].elements());
  const auto done = network->forward({image}, {scores});
  if (!done) return std::fprintf(stderr, "%s\n", done.error().text.c_str()), 1;
  for (const float score : scores) {
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    std::printf("%08" PRIx32 " ", bits);
  }
  std::printf("%s\n", network->device().c_str());
}
