// PhoneBit's layers for C++17, chained by hand: for networks that no converter knows.
//
//   phonebit::Builder net("tiny");
//   auto image = net.input("image", phonebit::Type::u8, 32, 32, 3);
//   auto conv1 = net.conv2d(image, phonebit::Conv2d(64, 3, Weights::signs(w1)).padding(1).norm(bn1).sign());
//   auto pool1 = net.max_pool(conv1, phonebit::Pool(2));
//   ...
//   net.output(scores);
//   auto network = net.network();          // Result<phonebit::Network>
//
// A header-only wrapper of phonebit_layers_c.h under the rules of phonebit.h. Layers are descriptions of the
// caller's numbers, which must stay until the layer is added; the builder copies them. The builder keeps the
// first error: layers after it do nothing, and network() and save() return it. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "phonebit/phonebit.h"
#include "phonebit/phonebit_layers_c.h"

namespace phonebit {
inline namespace v1 {

/// The order of float32 operations of the framework that trained.
enum class NormArithmetic : int32_t {
  keras = PHONEBIT_NORM_KERAS,  ///< (v - mean) * (gamma / sqrt(variance + epsilon)) + beta, each rounded
  torch = PHONEBIT_NORM_TORCH,  ///< v * scale + (beta - mean * scale), fused
};

/// Batch normalisation at inference: finite numbers, one for each channel. Empty: gamma 1, beta 0, mean 0,
/// variance 1.
struct BatchNorm {
  Span<const float> gamma, beta, mean, variance;
  float epsilon = 1e-3f;
  NormArithmetic arithmetic = NormArithmetic::keras;
};

/// A value in a network that is being built. Meaningful to its builder only.
struct Tensor {
  int number = 0;
};

/// What a layer multiplies by: [out_channels][kernel height][kernel width][channels of a group].
class Weights {
 public:
  static Weights values(Span<const float> numbers) { return {numbers, {}, false}; }
  /// Of these numbers only the signs count; the sign of 0 is +1.
  static Weights signs(Span<const float> numbers) { return {numbers, {}, true}; }
  /// Signs in words of 32 channels of one tap, least significant bit first, 1 = +1, unused bits 0.
  static Weights packed(Span<const uint32_t> words) { return {{}, words, true}; }

 private:
  friend class Builder;
  Weights(Span<const float> values, Span<const uint32_t> packed, bool is_binary)
      : values_(values), packed_(packed), is_binary_(is_binary) {}
  Span<const float> values_;
  Span<const uint32_t> packed_;
  bool is_binary_;
};

/// What follows a layer's sum v, in this order: v * scale + bias, norm, + added, activation or sign.
template <class Layer>
class WithEpilogue {
 public:
  Layer& name(std::string name) { return set(name_, std::move(name)); }
  /// One number for each channel.
  Layer& scale(Span<const float> numbers) { return set(scale_, numbers); }
  Layer& bias(Span<const float> numbers) { return set(bias_, numbers); }
  Layer& norm(const BatchNorm& norm) { return has_norm_ = true, set(norm_, norm); }
  /// Adds a tensor of f32 and of the output's shape.
  Layer& add(Tensor tensor) { return set(added_, tensor.number); }
  Layer& activation(Activation activation) {
    return set(activation_, static_cast<phonebit_activation>(activation));
  }
  /// v where it is at least 0, else v * slope; one slope for each channel.
  Layer& prelu(Span<const float> slopes) {
    activation_ = PHONEBIT_ACTIVATION_PRELU;
    return set(slopes_, slopes);
  }
  /// Gives bits: +1 where v >= 0, else -1.
  Layer& sign() { return set(output_, PHONEBIT_OUTPUT_SIGNS); }

 protected:
  template <class Field, class Value>
  Layer& set(Field& field, Value value) {
    field = std::move(value);
    return static_cast<Layer&>(*this);
  }

 private:
  friend class Builder;
  std::string name_;
  Span<const float> scale_, bias_, slopes_;
  BatchNorm norm_;
  bool has_norm_ = false;
  int32_t added_ = 0;
  phonebit_activation activation_ = PHONEBIT_ACTIVATION_NONE;
  phonebit_output_kind output_ = PHONEBIT_OUTPUT_VALUES;
};

/// A convolution. Weights are binary, unless the input is f32.
class Conv2d : public WithEpilogue<Conv2d> {
 public:
  Conv2d(int out_channels, int kernel, Weights weights) : Conv2d(out_channels, kernel, kernel, weights) {}
  Conv2d(int out_channels, int kernel_height, int kernel_width, Weights weights)
      : out_channels_(out_channels), weights_(weights) {
    window_.kernel_height = kernel_height;
    window_.kernel_width = kernel_width;
  }
  Conv2d& stride(int stride) { return window_.stride_height = window_.stride_width = stride, *this; }
  Conv2d& dilation(int dilation) {
    return window_.dilation_height = window_.dilation_width = dilation, *this;
  }
  /// Pixels on all sides; padded taps of bits count as `value`: -1, 0 or +1.
  Conv2d& padding(int pixels, int value = 0) { return padding(pixels, pixels, pixels, pixels, value); }
  Conv2d& padding(int top, int left, int bottom, int right, int value = 0) {
    window_.pad_top = top;
    window_.pad_left = left;
    window_.pad_bottom = bottom;
    window_.pad_right = right;
    return set(pad_value_, value);
  }
  Conv2d& groups(int groups) { return set(groups_, groups); }
  /// A u8 input counts as mul * level + add.
  Conv2d& levels(int mul, int add) { return set(input_mul_, mul), set(input_add_, add); }

 private:
  friend class Builder;
  int out_channels_;
  Weights weights_;
  phonebit_window window_ = PHONEBIT_INIT(phonebit_window);
  int pad_value_ = 0, groups_ = 1, input_mul_ = 0, input_add_ = 0;
};

/// Every output reads the whole map: weights [out_channels][height][width][channels].
class Dense : public WithEpilogue<Dense> {
 public:
  Dense(int out_channels, Weights weights) : out_channels_(out_channels), weights_(weights) {}
  /// A u8 input counts as mul * level + add.
  Dense& levels(int mul, int add) { return set(input_mul_, mul), set(input_add_, add); }

 private:
  friend class Builder;
  int out_channels_;
  Weights weights_;
  int input_mul_ = 0, input_add_ = 0;
};

/// An epilogue alone, on any tensor; bits count as -1 and +1.
class Pointwise : public WithEpilogue<Pointwise> {};

/// A square window; its stride is its size unless said otherwise.
class Pool {
 public:
  explicit Pool(int kernel) {
    window_.kernel_height = window_.kernel_width = kernel;
    window_.stride_height = window_.stride_width = kernel;
  }
  /// The whole map.
  static Pool global() { return Pool(0); }
  Pool& stride(int stride) { return window_.stride_height = window_.stride_width = stride, *this; }
  /// Padded taps are not looked at.
  Pool& padding(int top, int left, int bottom, int right) {
    window_.pad_top = top;
    window_.pad_left = left;
    window_.pad_bottom = bottom;
    window_.pad_right = right;
    return *this;
  }
  /// Of max pools of bits, in networks whose batch normalisation comes after the pool and was given to the
  /// layer in front of it: its gamma. Channels where it is negative take the minimum.
  Pool& norm_moved_ahead(Span<const float> gamma) { return gamma_ = gamma, *this; }
  Pool& name(std::string name) { return name_ = std::move(name), *this; }

 private:
  friend class Builder;
  phonebit_window window_ = PHONEBIT_INIT(phonebit_window);
  Span<const float> gamma_;
  std::string name_;
};

/// A network that is being put together. Owns copies of all numbers; move-only.
class Builder {
 public:
  explicit Builder(const std::string& name);

  /// `type`: u8 or f32.
  Tensor input(const std::string& name, Type type, int height, int width, int channels);
  Tensor conv2d(Tensor input, const Conv2d& layer);
  Tensor dense(Tensor input, const Dense& layer);
  /// Of bits (gives bits) or f32.
  Tensor max_pool(Tensor input, const Pool& layer);
  /// Of f32: the mean of the taps inside the map.
  Tensor average_pool(Tensor input, const Pool& layer);
  Tensor pointwise(Tensor input, const Pointwise& layer);
  /// Of f32, over the channels.
  Tensor softmax(Tensor input, const std::string& name = "");

  /// Makes a tensor the next output.
  void output(Tensor tensor);
  /// Class names, one for each channel of the first output.
  void labels(const std::vector<std::string>& names);
  /// What images become before they are input number `input`.
  void preprocessing(const Preprocessing& rule, int input = 0);

  Result<TensorInfo> info(Tensor tensor) const;
  /// The first thing that went wrong; Status::ok while nothing has.
  const Error& error() const { return error_; }

  /// Checks and prepares the network, which does not need the builder any more. Blocks.
  Result<Network> network(const Options& options = {}) const;
  /// Writes its .pbit file in one step: an old file is kept or replaced by a whole one. Blocks.
  Result<void> save(const std::string& path) const;

 private:
  struct Destroy {
    void operator()(phonebit_builder* object) const { phonebit_builder_destroy(object); }
  };
  /// An epilogue and the norm that it points to.
  struct CEpilogue {
    phonebit_batch_norm norm = PHONEBIT_INIT(phonebit_batch_norm);
    phonebit_epilogue epilogue = PHONEBIT_INIT(phonebit_epilogue);
    template <class Layer>
    explicit CEpilogue(const WithEpilogue<Layer>& layer);
    CEpilogue(const CEpilogue&) = delete;
    CEpilogue& operator=(const CEpilogue&) = delete;
  };
  using AddPool = phonebit_status (*)(phonebit_builder*, int32_t, const phonebit_pool*, int32_t*);

  static phonebit_floats floats(Span<const float> numbers) { return {numbers.data(), numbers.size()}; }
  static phonebit_weights weights(const Weights& weights);
  static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  Tensor pool(AddPool add, Tensor input, const Pool& layer);
  /// `call` gives a status; it is not made after an error.
  template <class Call>
  void attempt(const Call& call);

  std::unique_ptr<phonebit_builder, Destroy> handle_;
  Error error_;
};

}  // namespace v1
}  // namespace phonebit

#include "phonebit/phonebit_layers_inline.h"
