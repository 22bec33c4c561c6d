// Networks put together layer by layer.
#include <string>
#include <vector>

#include "arguments.h"
#include "builder/network_builder.h"
#include "descriptions.h"
#include "handles.h"
#include "phonebit/phonebit_layers_c.h"
#include "status.h"
#include "threads/floating_point_scope.h"

using namespace phonebit::engine::c_api;
namespace builder = phonebit::engine::builder;

static_assert(static_cast<int>(builder::NormArithmetic::torch) == PHONEBIT_NORM_TORCH);
static_assert(static_cast<int>(builder::Activation::prelu) == PHONEBIT_ACTIVATION_PRELU);
static_assert(builder::function_of(builder::Activation{PHONEBIT_ACTIVATION_TANH})->kind ==
              phonebit::engine::format::StepKind::kTanh);
static_assert(static_cast<int>(builder::OutputKind::signs) == PHONEBIT_OUTPUT_SIGNS);

struct phonebit_builder {
  builder::NetworkBuilder layers;
};

namespace {

builder::NetworkBuilder& of(phonebit_builder* handle) { return given(handle, "builder").layers; }
const builder::NetworkBuilder& of(const phonebit_builder* handle) { return given(handle, "builder").layers; }

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

template <class T>
builder::Numbers<T> numbers(const T* data, size_t count, const char* name) {
  if (data == nullptr && count > 0)
    phonebit::engine::fail(phonebit::engine::ErrorCode::input, "%s: got NULL, expected %zu numbers", name,
                           count);
  return {data, count};
}

builder::Floats floats(const phonebit_floats& source, const char* name) {
  return numbers(source.data, source.count, name);
}

builder::BatchNorm norm_of(const phonebit_batch_norm& given_norm) {
  const auto source = taken(given_norm, "phonebit_batch_norm");
  builder::BatchNorm norm;
  norm.arithmetic = enumerator(source.arithmetic, builder::NormArithmetic::torch, "arithmetic");
  norm.gamma = floats(source.gamma, "gamma");
  norm.beta = floats(source.beta, "beta");
  norm.mean = floats(source.mean, "mean");
  norm.variance = floats(source.variance, "variance");
  norm.epsilon = source.epsilon;
  return norm;
}

builder::Activation activation_of(phonebit_activation number) {
  const auto activation = static_cast<builder::Activation>(number);
  if ((number < 0 || activation > builder::Activation::prelu) && builder::function_of(activation) == nullptr)
    phonebit::engine::fail(phonebit::engine::ErrorCode::input,
                           "activation: got %d, expected a PHONEBIT_ACTIVATION_...", number);
  return activation;
}

/// An epilogue together with the norm that it points to.
struct OwnEpilogue {
  builder::BatchNorm norm;
  builder::Epilogue epilogue;

  explicit OwnEpilogue(const phonebit_epilogue* given_epilogue) {
    if (given_epilogue == nullptr) return;
    const auto source = taken(*given_epilogue, "phonebit_epilogue");
    epilogue.output = enumerator(source.output, builder::OutputKind::signs, "output");
    epilogue.scale = floats(source.scale, "scale");
    epilogue.bias = floats(source.bias, "bias");
    if (source.norm != nullptr) {
      norm = norm_of(*source.norm);
      epilogue.norm = &norm;
    }
    epilogue.added = source.added;
    epilogue.activation = activation_of(source.activation);
    epilogue.slopes = floats(source.slopes, "slopes");
  }
  OwnEpilogue(const OwnEpilogue&) = delete;
  OwnEpilogue& operator=(const OwnEpilogue&) = delete;
};

int32_t or_one(int32_t value) { return value != 0 ? value : 1; }

builder::Window window_of(const phonebit_window* given_window) {
  const auto source = taken(given(given_window, "window"), "phonebit_window");
  builder::Window window;
  window.kernel_height = source.kernel_height;
  window.kernel_width = source.kernel_width;
  window.stride_height = or_one(source.stride_height);
  window.stride_width = or_one(source.stride_width);
  window.dilation_height = or_one(source.dilation_height);
  window.dilation_width = or_one(source.dilation_width);
  window.pad_top = source.pad_top;
  window.pad_left = source.pad_left;
  window.pad_bottom = source.pad_bottom;
  window.pad_right = source.pad_right;
  return window;
}

builder::Weights weights_of(const phonebit_weights* given_weights) {
  const auto source = taken(given(given_weights, "weights"), "phonebit_weights");
  builder::Weights weights;
  weights.is_binary = source.is_binary != 0;
  weights.values = floats(source.values, "values");
  weights.packed = numbers(source.packed.data, source.packed.count, "packed");
  return weights;
}

/// What phonebit_conv2d and phonebit_dense have in common, their epilogues apart.
template <class Layer>
builder::Convolution convolution_of(const Layer& source) {
  builder::Convolution layer;
  layer.name = text_or_empty(source.name);
  layer.out_channels = source.out_channels;
  layer.weights = weights_of(source.weights);
  if (source.input_mul != 0 || source.input_add != 0) {
    layer.input_mul = source.input_mul;
    layer.input_add = source.input_add;
  }
  return layer;
}

builder::Pool pool_of(const phonebit_pool* given_pool) {
  const auto source = taken(given(given_pool, "layer"), "phonebit_pool");
  return {text_or_empty(source.name), window_of(source.window), floats(source.gamma, "gamma")};
}

/// `add` gives a tensor's number.
template <class Add>
phonebit_status add_layer(int32_t* output, const Add& add) {
  return guarded([&] {
    const phonebit::engine::threads::FloatingPointScope rounding;  // of thresholds
    int32_t& result = given(output, "output");
    result = add();
  });
}

}  // namespace

phonebit_status phonebit_builder_create(const char* name, phonebit_builder** result) {
  return guarded([&] {
    phonebit_builder*& own = given(result, "builder");
    own = new phonebit_builder{builder::NetworkBuilder(given_text(name, "name"))};
  });
}

void phonebit_builder_destroy(phonebit_builder* handle) { delete handle; }

phonebit_status phonebit_builder_input(phonebit_builder* handle, const char* name, phonebit_type type,
                                       int32_t height, int32_t width, int32_t channels, int32_t* tensor) {
  return add_layer(tensor, [&] {
    return of(handle).input(given_text(name, "name"),
                            enumerator(type, phonebit::engine::ElementType::f32, "type"), height, width,
                            channels);
  });
}

phonebit_status phonebit_builder_conv2d(phonebit_builder* handle, int32_t input,
                                        const phonebit_conv2d* given_layer, int32_t* output) {
  return add_layer(output, [&] {
    builder::NetworkBuilder& own = of(handle);
    const auto source = taken(given(given_layer, "layer"), "phonebit_conv2d");
    const OwnEpilogue end(source.epilogue);
    builder::Convolution layer = convolution_of(source);
    layer.epilogue = end.epilogue;
    layer.window = window_of(source.window);
    layer.groups = or_one(source.groups);
    layer.pad_value = source.pad_value;
    return own.convolution(input, layer);
  });
}

phonebit_status phonebit_builder_dense(phonebit_builder* handle, int32_t input,
                                       const phonebit_dense* given_layer, int32_t* output) {
  return add_layer(output, [&] {
    builder::NetworkBuilder& own = of(handle);
    const auto source = taken(given(given_layer, "layer"), "phonebit_dense");
    const OwnEpilogue end(source.epilogue);
    builder::Convolution layer = convolution_of(source);
    layer.epilogue = end.epilogue;
    return own.dense(input, layer);
  });
}

phonebit_status phonebit_builder_max_pool(phonebit_builder* handle, int32_t input, const phonebit_pool* layer,
                                          int32_t* output) {
  return add_layer(output, [&] { return of(handle).max_pool(input, pool_of(layer)); });
}

phonebit_status phonebit_builder_average_pool(phonebit_builder* handle, int32_t input,
                                              const phonebit_pool* layer, int32_t* output) {
  return add_layer(output, [&] { return of(handle).average_pool(input, pool_of(layer)); });
}

phonebit_status phonebit_builder_pointwise(phonebit_builder* handle, int32_t input, const char* name,
                                           const phonebit_epilogue* epilogue, int32_t* output) {
  return add_layer(output, [&] {
    const OwnEpilogue end(&given(epilogue, "epilogue"));
    return of(handle).pointwise(input, text_or_empty(name), end.epilogue);
  });
}

phonebit_status phonebit_builder_softmax(phonebit_builder* handle, int32_t input, const char* name,
                                         int32_t* output) {
  return add_layer(output, [&] { return of(handle).softmax(input, text_or_empty(name)); });
}

phonebit_status phonebit_builder_tensor(const phonebit_builder* handle, int32_t tensor,
                                        phonebit_tensor_info* info) {
  return guarded([&] {
    give(given(info, "info"), tensor_description(of(handle).tensor(tensor)), "phonebit_tensor_info");
  });
}

phonebit_status phonebit_builder_output(phonebit_builder* handle, int32_t tensor) {
  return guarded([&] { of(handle).output(tensor); });
}

phonebit_status phonebit_builder_set_labels(phonebit_builder* handle, const char* const* labels,
                                            int32_t count) {
  return guarded([&] {
    std::vector<std::string> names;
    for (size_t i = 0; i < checked_count(labels, count, "labels"); ++i)
      names.push_back(given_text(labels[i], "label"));
    of(handle).labels(names);
  });
}

phonebit_status phonebit_builder_set_preprocessing(phonebit_builder* handle, int32_t input,
                                                   const phonebit_preprocessing* rule) {
  return guarded([&] {
    builder::NetworkBuilder& own = of(handle);
    checked_index(input, own.inputs(), "inputs");
    own.preprocessing(preprocessing_of(given(rule, "rule"), input));
  });
}

phonebit_status phonebit_builder_network(const phonebit_builder* handle, const phonebit_options* options,
                                         phonebit_network** network) {
  return guarded([&] {
    phonebit_network*& result = given(network, "network");
    phonebit::engine::memory::AlignedBuffer file = of(handle).file();
    phonebit::engine::Network loaded =
        phonebit::engine::Network::load_memory(file.data(), file.size(), options_of(options));
    result = new phonebit_network(std::move(loaded), std::move(file));
  });
}

phonebit_status phonebit_builder_save(const phonebit_builder* handle, const char* path) {
  return guarded([&] {
    const builder::NetworkBuilder& own = of(handle);
    builder::replace_file(given_text(path, "path"), own.file());
  });
}
