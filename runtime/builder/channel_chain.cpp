#include "builder/channel_chain.h"

#include <algorithm>
#include <cmath>

#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

/// a * b + c with one rounding: products of floats are exact in double.
float multiply_add(float a, float b, float c) { return static_cast<float>(static_cast<double>(a) * b + c); }

int sign_of(float value) { return (value > 0.0f) - (value < 0.0f); }

}  // namespace

std::vector<float> one_a_channel(Floats given, size_t channels, float fallback, const char* name,
                                 const std::string& where) {
  if (!given.is_given()) return std::vector<float>(channels, fallback);
  if (given.count != channels)
    fail(ErrorCode::input, "%s: %s has %zu numbers, expected one for each of %zu channels", where.c_str(),
         name, given.count, channels);
  for (size_t c = 0; c < channels; ++c)
    if (!std::isfinite(given[c]))
      fail(ErrorCode::input, "%s: %s of channel %zu is %g, expected a finite number", where.c_str(), name, c,
           static_cast<double>(given[c]));
  return {given.data, given.data + given.count};
}

ChannelChain::ChannelChain(const Epilogue& epilogue, size_t channels, const std::string& where)
    : has_affine_(epilogue.scale.is_given() || epilogue.bias.is_given()),
      has_norm_(epilogue.norm != nullptr),
      scale_(one_a_channel(epilogue.scale, channels, 1.0f, "scale", where)),
      bias_(one_a_channel(epilogue.bias, channels, 0.0f, "bias", where)) {
  const BatchNorm none;
  const BatchNorm& norm = has_norm_ ? *epilogue.norm : none;
  is_fused_ = norm.arithmetic == NormArithmetic::torch;
  mean_ = one_a_channel(norm.mean, channels, 0.0f, "mean", where);
  beta_ = one_a_channel(norm.beta, channels, 0.0f, "beta", where);
  norm_scale_ = one_a_channel(norm.gamma, channels, 1.0f, "gamma", where);
  const std::vector<float> variance = one_a_channel(norm.variance, channels, 1.0f, "variance", where);
  for (size_t c = 0; c < channels; ++c) {
    const float deviation = std::sqrt(variance[c] + norm.epsilon);
    norm_scale_[c] = is_fused_ ? 1.0f / deviation * norm_scale_[c] : norm_scale_[c] / deviation;
    if (!(deviation > 0.0f) || !std::isfinite(norm_scale_[c]) ||
        !std::isfinite(multiply_add(-mean_[c], norm_scale_[c], beta_[c])))
      fail(ErrorCode::input,
           "%s: batch normalisation of channel %zu divides by sqrt(variance %g + epsilon %g), which float32 "
           "cannot; give a larger epsilon",
           where.c_str(), c, static_cast<double>(variance[c]), static_cast<double>(norm.epsilon));
  }
}

float ChannelChain::apply(size_t channel, float value) const {
  if (has_affine_) value = value * scale_[channel] + bias_[channel];
  if (!has_norm_) return value;
  const float mean = mean_[channel], scale = norm_scale_[channel], beta = beta_[channel];
  if (is_fused_) return multiply_add(value, scale, multiply_add(-mean, scale, beta));
  return (value - mean) * scale + beta;
}

int ChannelChain::direction(size_t channel) const {
  return sign_of(scale_[channel]) * sign_of(norm_scale_[channel]);
}

ScaleBias ChannelChain::merged() const {
  ScaleBias step{scale_, bias_};
  bool changes = false;
  for (size_t c = 0; c < channels(); ++c) {
    if (has_norm_) {
      const double factor = norm_scale_[c];
      const auto offset = static_cast<float>(beta_[c] - mean_[c] * factor);
      step.scale[c] = static_cast<float>(scale_[c] * factor);
      step.bias[c] = static_cast<float>(bias_[c] * factor + offset);
    }
    changes |= step.scale[c] != 1.0f || step.bias[c] != 0.0f;
  }
  return changes ? step : ScaleBias{};
}

}  // namespace phonebit::engine::builder
