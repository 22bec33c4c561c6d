// Scale, bias and batch normalisation of one layer: as the framework's float32 arithmetic, and as one step.
#pragma once

#include <cstddef>
#include <vector>

#include "builder/layer_arguments.h"

namespace phonebit::engine::builder {

/// One number for each channel times the value, another one added.
struct ScaleBias {
  std::vector<float> scale, bias;
};

/// The numbers of an array that must have one for each channel; `fallback` for each where there is none.
/// Throws Error(input) that begins with `where`, also for what is infinite or not a number.
std::vector<float> one_a_channel(Floats given, size_t channels, float fallback, const char* name,
                                 const std::string& where);

/// Maps values of each channel, step by step, as the framework does: each rounding monotone, so that the
/// whole is monotone too. Immutable.
class ChannelChain {
 public:
  /// Of an epilogue up to its batch normalisation. Throws Error(input).
  ChannelChain(const Epilogue& epilogue, size_t channels, const std::string& where);

  float apply(size_t channel, float value) const;
  /// +1 where the chain never decreases, -1 where it never increases, 0 where it is constant.
  int direction(size_t channel) const;
  size_t channels() const { return norm_scale_.size(); }

  /// The same rearranged as one scale and bias, products and sums taken in double and rounded once. No
  /// elements where it changes nothing.
  ScaleBias merged() const;

 private:
  bool has_affine_, has_norm_, is_fused_ = false;
  std::vector<float> scale_, bias_, mean_, norm_scale_, beta_;
};

}  // namespace phonebit::engine::builder
