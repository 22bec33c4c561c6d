// Definitions of what phonebit_layers.h declares. A part of it.
#pragma once

namespace phonebit {
inline namespace v1 {

template <class Call>
void Builder::attempt(const Call& call) {
  if (error_.status != Status::ok) return;
  const phonebit_status status = call();
  if (status != PHONEBIT_OK) error_ = detail::failure(status);
}

template <class Layer>
Builder::CEpilogue::CEpilogue(const WithEpilogue<Layer>& layer) {
  norm.arithmetic = static_cast<phonebit_norm_arithmetic>(layer.norm_.arithmetic);
  norm.gamma = floats(layer.norm_.gamma);
  norm.beta = floats(layer.norm_.beta);
  norm.mean = floats(layer.norm_.mean);
  norm.variance = floats(layer.norm_.variance);
  norm.epsilon = layer.norm_.epsilon;
  epilogue.output = layer.output_;
  epilogue.scale = floats(layer.scale_);
  epilogue.bias = floats(layer.bias_);
  epilogue.norm = layer.has_norm_ ? &norm : nullptr;
  epilogue.added = layer.added_;
  epilogue.activation = layer.activation_;
  epilogue.slopes = floats(layer.slopes_);
}

inline phonebit_weights Builder::weights(const Weights& weights) {
  auto c = PHONEBIT_INIT(phonebit_weights);
  c.is_binary = weights.is_binary_ ? 1 : 0;
  c.values = floats(weights.values_);
  c.packed = {weights.packed_.data(), weights.packed_.size()};
  return c;
}

inline Builder::Builder(const std::string& name) {
  attempt([&] {
    phonebit_builder* builder = nullptr;
    const phonebit_status status = phonebit_builder_create(name.c_str(), &builder);
    handle_.reset(builder);
    return status;
  });
}

inline Tensor Builder::input(const std::string& name, Type type, int height, int width, int channels) {
  Tensor tensor;
  attempt([&] {
    return phonebit_builder_input(handle_.get(), name.c_str(), static_cast<phonebit_type>(type), height,
                                  width, channels, &tensor.number);
  });
  return tensor;
}

inline Tensor Builder::conv2d(Tensor input, const Conv2d& layer) {
  const CEpilogue end(layer);
  const phonebit_weights own_weights = weights(layer.weights_);
  auto c = PHONEBIT_INIT(phonebit_conv2d);
  c.out_channels = layer.out_channels_;
  c.name = or_null(layer.name_);
  c.window = &layer.window_;
  c.weights = &own_weights;
  c.epilogue = &end.epilogue;
  c.groups = layer.groups_;
  c.pad_value = layer.pad_value_;
  c.input_mul = layer.input_mul_;
  c.input_add = layer.input_add_;
  Tensor output;
  attempt([&] { return phonebit_builder_conv2d(handle_.get(), input.number, &c, &output.number); });
  return output;
}

inline Tensor Builder::dense(Tensor input, const Dense& layer) {
  const CEpilogue end(layer);
  const phonebit_weights own_weights = weights(layer.weights_);
  auto c = PHONEBIT_INIT(phonebit_dense);
  c.out_channels = layer.out_channels_;
  c.name = or_null(layer.name_);
  c.weights = &own_weights;
  c.epilogue = &end.epilogue;
  c.input_mul = layer.input_mul_;
  c.input_add = layer.input_add_;
  Tensor output;
  attempt([&] { return phonebit_builder_dense(handle_.get(), input.number, &c, &output.number); });
  return output;
}

inline Tensor Builder::pool(AddPool add, Tensor input, const Pool& layer) {
  auto c = PHONEBIT_INIT(phonebit_pool);
  c.name = or_null(layer.name_);
  c.window = &layer.window_;
  c.gamma = floats(layer.gamma_);
  Tensor output;
  attempt([&] { return add(handle_.get(), input.number, &c, &output.number); });
  return output;
}

inline Tensor Builder::max_pool(Tensor input, const Pool& layer) {
  return pool(phonebit_builder_max_pool, input, layer);
}

inline Tensor Builder::average_pool(Tensor input, const Pool& layer) {
  return pool(phonebit_builder_average_pool, input, layer);
}

inline Tensor Builder::pointwise(Tensor input, const Pointwise& layer) {
  const CEpilogue end(layer);
  Tensor output;
  attempt([&] {
    return phonebit_builder_pointwise(handle_.get(), input.number, or_null(layer.name_), &end.epilogue,
                                      &output.number);
  });
  return output;
}

inline Tensor Builder::softmax(Tensor input, const std::string& name) {
  Tensor output;
  attempt(
      [&] { return phonebit_builder_softmax(handle_.get(), input.number, or_null(name), &output.number); });
  return output;
}

inline void Builder::output(Tensor tensor) {
  attempt([&] { return phonebit_builder_output(handle_.get(), tensor.number); });
}

inline void Builder::labels(const std::vector<std::string>& names) {
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  attempt([&] {
    return phonebit_builder_set_labels(handle_.get(), texts.data(), static_cast<int32_t>(texts.size()));
  });
}

inline void Builder::preprocessing(const Preprocessing& rule, int input) {
  const phonebit_preprocessing c = detail::c_value_of(rule);
  attempt([&] { return phonebit_builder_set_preprocessing(handle_.get(), input, &c); });
}

inline Result<TensorInfo> Builder::info(Tensor tensor) const {
  if (error_.status != Status::ok) return error_;
  auto c = PHONEBIT_INIT(phonebit_tensor_info);
  const phonebit_status status = phonebit_builder_tensor(handle_.get(), tensor.number, &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return detail::value_of(c);
}

inline Result<Network> Builder::network(const Options& options) const {
  if (error_.status != Status::ok) return error_;
  const auto own_options = options.handle();
  if (!own_options) return own_options.error();
  phonebit_network* network = nullptr;
  const phonebit_status status = phonebit_builder_network(handle_.get(), own_options->get(), &network);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return Network(network);
}

inline Result<void> Builder::save(const std::string& path) const {
  if (error_.status != Status::ok) return error_;
  return detail::result_of(phonebit_builder_save(handle_.get(), path.c_str()));
}

}  // namespace v1
}  // namespace phonebit
