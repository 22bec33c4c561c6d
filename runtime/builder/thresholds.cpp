#include "builder/thresholds.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

/// Bit pattern of +inf: keys -kInfinity..kInfinity number all float32 in ascending order; key 0 is +0.
constexpr int64_t kInfinity = 0x7F800000;

float float_of_key(int64_t key) {
  const auto bits = static_cast<uint32_t>(key < 0 ? -key : key);
  float magnitude = 0.0f;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  return key < 0 ? -magnitude : magnitude;
}

/// The smallest number in (low, high] where decide() differs from decide(low), given that it changes once and that
/// decide(high) differs.
template <class Decide>
int64_t first_change(int64_t low, int64_t high, const Decide& decide) {
  const bool first = decide(low);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (decide(middle) == first ? low : high) = middle;
  }
  return high;
}

void check_is_number(const ChannelChain& chain, size_t channel, int64_t accumulator,
                     const std::string& where) {
  if (std::isnan(chain.apply(channel, static_cast<float>(accumulator))))
    fail(ErrorCode::input,
         "%s: scale and batch normalisation of channel %zu give no number for the accumulator %lld; give "
         "smaller scales",
         where.c_str(), channel, static_cast<long long>(accumulator));
}

}  // namespace

Thresholds<int32_t> integer_thresholds(const ChannelChain& chain, const Reach& reach,
                                       const std::string& where) {
  const size_t channels = chain.channels();
  Thresholds<int32_t> found{std::vector<int32_t>(channels), std::vector<bool>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    // Only 0 * inf is not a number, and the factor is largest at an end.
    check_is_number(chain, c, reach.low, where);
    check_is_number(chain, c, reach.high, where);
    const auto decide = [&](int64_t index) {
      return chain.apply(c, static_cast<float>(reach.low + index * reach.step)) >= 0.0f;
    };
    const int64_t last_index = (reach.high - reach.low) / reach.step;
    const bool first = decide(0), last = decide(last_index);
    int64_t threshold = first ? reach.low : reach.high + 1;  // always, never
    if (first != last) {
      const int64_t crossing = reach.low + first_change(0, last_index, decide) * reach.step;
      // Falling: negating the filter negates its accumulator, and acc <= a is -acc >= -a.
      threshold = first ? reach.step - crossing : crossing;
      found.negated[c] = first;
    }
    found.threshold[c] = static_cast<int32_t>(threshold);
  }
  return found;
}

Thresholds<float> float_thresholds(const ChannelChain& chain) {
  constexpr float kForever = std::numeric_limits<float>::infinity();
  const size_t channels = chain.channels();
  Thresholds<float> found{std::vector<float>(channels), std::vector<bool>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    const int direction = chain.direction(c);
    found.negated[c] = direction < 0;
    const auto decide = [&](int64_t key) {
      const float value = float_of_key(key);
      return chain.apply(c, direction < 0 ? -value : value) >= 0.0f;
    };
    // 0 * inf is not a number: chains that are constant are asked at 0.
    const bool is_always = decide(direction == 0 ? 0 : -kInfinity);
    const bool is_never = !decide(direction == 0 ? 0 : kInfinity);
    found.threshold[c] = is_always  ? -kForever
                         : is_never ? kForever
                                    : float_of_key(first_change(-kInfinity, kInfinity, decide));
  }
  return found;
}

}  // namespace phonebit::engine::builder
