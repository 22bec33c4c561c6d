// What layers are added with. All arrays are the caller's, and are used only during the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/steps.h"

namespace phonebit::engine::builder {

/// Numbers of the caller; none where `data` is null.
template <class T>
struct Numbers {
  const T* data = nullptr;
  size_t count = 0;

  bool is_given() const { return data != nullptr; }
  const T& operator[](size_t index) const { return data[index]; }
};
using Floats = Numbers<float>;
using Words = Numbers<uint32_t>;

/// The order of a framework's float32 operations; thresholds depend on it.
enum class NormArithmetic {
  keras,  ///< (v - mean) * (gamma / sqrt(variance + epsilon)) + beta, each operation rounded
  torch,  ///< v * scale + (beta - mean * scale), fused; scale = 1 / sqrt(variance + epsilon) * gamma
};

/// Batch normalisation at inference, an element a channel. None: gamma 1, beta 0, mean 0, variance 1.
struct BatchNorm {
  Floats gamma, beta, mean, variance;
  float epsilon = 0.0f;
  NormArithmetic arithmetic = NormArithmetic::keras;
};

/// Functions of epilogues follow: their steps' numbers, less one.
enum class Activation { none, relu, relu6, hard_tanh, prelu };

/// The step of an activation that is a function; null of any other, and of what is no activation.
constexpr const ops::Step* function_of(Activation activation) {
  const uint32_t step = static_cast<uint32_t>(activation) + 1;
  if (!ops::is_step(step) || ops::kSteps[step - 1].form != ops::StepForm::function) return nullptr;
  return &ops::kSteps[step - 1];
}
enum class OutputKind { values, signs };

/// What follows a layer's main value v, in this order: v * scale + bias, norm, + added, activation, sign.
struct Epilogue {
  OutputKind output = OutputKind::values;
  Floats scale, bias;               ///< an element a channel; none: 1, 0
  const BatchNorm* norm = nullptr;  ///< null: none
  int added = 0;                    ///< number of a tensor of floats of the output's shape; 0: none
  Activation activation = Activation::none;
  Floats slopes;  ///< of prelu, an element a channel
};

/// A sliding window.
struct Window {
  int kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int dilation_height = 1, dilation_width = 1;
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

/// What a convolution multiplies by, [filters][kernel_height][kernel_width][channels of a group]: numbers, or
/// signs in the file's words, 32 channels of a tap in each. One of both is given.
struct Weights {
  Floats values;
  Words packed;
  bool is_binary = false;  ///< of values only the signs count; the sign of 0 is +1
};

struct Convolution {
  std::string name;  ///< empty: the builder finds one
  int out_channels = 0;
  Window window;
  int groups = 1;
  int pad_value = 0;  ///< what padded taps of bits count as: -1, 0 or +1
  Weights weights;
  int input_mul = 1, input_add = 0;  ///< a u8 input counts as input_mul * level + input_add
  Epilogue epilogue;
};

struct Pool {
  std::string name;
  Window window;
  /// Of bits: channels of negative gamma take the minimum, because their batch normalisation, which follows
  /// this pool, has moved in front of it. None: all take the maximum.
  Floats gamma;
};

}  // namespace phonebit::engine::builder
