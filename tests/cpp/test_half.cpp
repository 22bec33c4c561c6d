// Halves: every value there is, by the processor's instructions or without them.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "doctest_strings.h"
#include "format/half.h"

namespace {

using namespace phonebit::engine::format;

/// By the definition of IEEE 754, of the bits of a finite half.
float value_of(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

constexpr uint16_t kInfinity = 0x7c00;

TEST_CASE("each finite half is a float and comes back") {
  std::vector<uint16_t> halves;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    if ((bits & kInfinity) != kInfinity) halves.push_back(static_cast<uint16_t>(bits));
  std::vector<float> floats(halves.size());
  from_halves(halves.data(), halves.size(), floats.data());
  for (size_t i = 0; i < halves.size(); ++i) REQUIRE(floats[i] == value_of(halves[i]));
  CHECK(to_halves(floats.data(), floats.size()) == halves);
}

TEST_CASE("floats between two halves go to the nearer one, from the middle to the even one") {
  std::vector<float> floats;
  std::vector<uint16_t> expected;
  const auto add = [&](float value, uint16_t half) {
    floats.insert(floats.end(), {value, -value});
    expected.insert(expected.end(), {half, static_cast<uint16_t>(half | 0x8000)});
  };
  for (uint16_t low = 0; low + 1 < kInfinity; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const float middle = (value_of(low) + value_of(high)) / 2;
    add(middle, low % 2 == 0 ? low : high);
    add(std::nextafter(middle, 0.0f), low);
    add(std::nextafter(middle, INFINITY), high);
  }
  add(65520.0f, kInfinity);
  add(std::nextafter(65520.0f, 0.0f), 0x7bff);
  add(INFINITY, kInfinity);
  CHECK(to_halves(floats.data(), floats.size()) == expected);
}

TEST_CASE("any number of values is converted, and no more") {
  for (size_t count = 0; count < 20; ++count) {
    std::vector<float> floats(count + 1, 3.0f);
    std::vector<uint16_t> halves(count + 1, 7);
    to_halves(floats.data(), count, halves.data());
    for (size_t i = 0; i < count; ++i) CHECK(halves[i] == 0x4200);
    CHECK(halves[count] == 7);
    std::vector<float> back(count + 1, 1.0f);
    from_halves(halves.data(), count, back.data());
    for (size_t i = 0; i < count; ++i) CHECK(back[i] == 3.0f);
    CHECK(back[count] == 1.0f);
  }
}

}  // namespace
