// Layers chained by hand, against plain loops written from the mathematics; what is refused, and how.
// tests/bindings/test_native_layers.py compares such networks with the converter's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "doctest_strings.h"
#include "phonebit/phonebit_layers.h"

namespace {

using phonebit::Activation;
using phonebit::BatchNorm;
using phonebit::Builder;
using phonebit::Conv2d;
using phonebit::Dense;
using phonebit::Network;
using phonebit::Options;
using phonebit::Pointwise;
using phonebit::Pool;
using phonebit::Status;
using phonebit::Tensor;
using phonebit::Type;
using phonebit::Weights;
using Floats = std::vector<float>;

Options cpu() { return Options().device("cpu").threads(2); }

/// Multiples of 1/4, so that sums are exact in every order.
Floats dyadic(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats result(count);
  for (float& number : result) number = static_cast<float>(static_cast<int>(random() % 33) - 16) / 4;
  return result;
}

/// A map of numbers, channels innermost.
struct Map {
  int height, width, channels;
  Floats values;

  float at(int h, int w, int c) const { return values[static_cast<size_t>((h * width + w) * channels + c)]; }
};

struct Shape {
  int kernel, stride, pad, groups;
};

/// sum w * x, where taps outside the map are pad_value; `filters` are [out][kernel][kernel][in / groups].
Map convolved(const Map& in, const Floats& filters, int out_channels, const Shape& shape, float pad_value) {
  const auto size = [&](int extent) { return (extent + 2 * shape.pad - shape.kernel) / shape.stride + 1; };
  Map out{size(in.height), size(in.width), out_channels, {}};
  const int per_group = in.channels / shape.groups;
  for (int h = 0; h < out.height; ++h)
    for (int w = 0; w < out.width; ++w)
      for (int o = 0; o < out_channels; ++o) {
        float sum = 0;
        for (int tap = 0; tap < shape.kernel * shape.kernel; ++tap) {
          const int y = h * shape.stride - shape.pad + tap / shape.kernel;
          const int x = w * shape.stride - shape.pad + tap % shape.kernel;
          const bool is_inside = y >= 0 && y < in.height && x >= 0 && x < in.width;
          for (int c = 0; c < per_group; ++c) {
            const int channel = o / (out_channels / shape.groups) * per_group + c;
            const float value = is_inside ? in.at(y, x, channel) : pad_value;
            sum +=
                value * filters[static_cast<size_t>((o * shape.kernel * shape.kernel + tap) * per_group + c)];
          }
        }
        out.values.push_back(sum);
      }
  return out;
}

/// Each value by `function(value, channel)`.
template <class Function>
Map mapped(Map map, const Function& function) {
  for (size_t i = 0; i < map.values.size(); ++i)
    map.values[i] = function(map.values[i], i % static_cast<size_t>(map.channels));
  return map;
}

float sign(float value) { return value >= 0 ? 1.0f : -1.0f; }
Floats signs(Floats values) {
  std::transform(values.begin(), values.end(), values.begin(), sign);
  return values;
}

Floats forward(const Builder& builder, const Floats& image) {
  auto network = builder.network(cpu());
  REQUIRE(network.ok());
  Floats scores(network->outputs()[0].elements());
  CHECK(network->forward({image}, {scores}).ok());
  return scores;
}

void check_binary_convolution(int in_channels, int out_channels, const Shape& shape, int pad_value) {
  const Map image{7, 6, in_channels, dyadic(static_cast<size_t>(7 * 6 * in_channels), 1)};
  const size_t taps = static_cast<size_t>(shape.kernel * shape.kernel * in_channels / shape.groups);
  const Floats weights = dyadic(taps * static_cast<size_t>(out_channels), 2);
  const Floats scale = dyadic(static_cast<size_t>(out_channels), 3);
  const Floats bias = dyadic(static_cast<size_t>(out_channels), 4);
  Builder builder("conv");
  const Tensor bits = builder.pointwise(builder.input("x", Type::f32, 7, 6, in_channels), Pointwise().sign());
  Conv2d layer(out_channels, shape.kernel, Weights::signs(weights));
  layer.stride(shape.stride).padding(shape.pad, pad_value).groups(shape.groups).scale(scale).bias(bias);
  builder.output(builder.conv2d(bits, layer));
  const Map sum = convolved(mapped(image, [](float v, size_t) { return sign(v); }), signs(weights),
                            out_channels, shape, static_cast<float>(pad_value));
  const Map values = mapped(sum, [&](float v, size_t c) { return v * scale[c] + bias[c]; });
  CHECK(forward(builder, image.values) == values.values);

  Builder fused("signs");
  const Tensor again = fused.pointwise(fused.input("x", Type::f32, 7, 6, in_channels), Pointwise().sign());
  fused.output(fused.pointwise(fused.conv2d(again, layer.sign()), Pointwise()));
  CHECK(forward(fused, image.values) == signs(values.values));
}

/// Float values: a convolution with a shortcut and PReLU, a pool, activations.
TEST_CASE("float values") {
  const Map image{4, 4, 5, dyadic(80, 5)};
  const Floats weights = dyadic(5 * 9 * 5, 6), slopes = dyadic(5, 7);
  Builder builder("values");
  const Tensor x = builder.input("x", Type::f32, 4, 4, 5);
  Tensor y = builder.conv2d(x, Conv2d(5, 3, Weights::values(weights)).padding(1).add(x).prelu(slopes));
  y = builder.max_pool(y, Pool(2));
  y = builder.average_pool(y, Pool::global());
  y = builder.pointwise(y, Pointwise().activation(Activation::relu6).name("last"));
  builder.output(y);

  Map expected = convolved(image, weights, 5, {3, 1, 1, 1}, 0);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const float v = expected.values[i] + image.values[i];
    expected.values[i] = v >= 0 ? v : v * slopes[i % 5];
  }
  Floats scores(5);
  for (int c = 0; c < 5; ++c) {
    for (const int corner : {0, 2, 8, 10}) {  // of the windows
      const int h = corner / 4, w = corner % 4;
      scores[static_cast<size_t>(c)] += std::max({expected.at(h, w, c), expected.at(h, w + 1, c),
                                                  expected.at(h + 1, w, c), expected.at(h + 1, w + 1, c)});
    }
    scores[static_cast<size_t>(c)] = std::min(std::max(scores[static_cast<size_t>(c)] / 4, 0.0f), 6.0f);
  }
  CHECK(forward(builder, image.values) == scores);
  CHECK(builder.info(y).value().name == "last");
  CHECK(builder.info(x).value().height == 4);
  CHECK(builder.info(Tensor{99}).error().status == Status::input);
}

/// A shortcut in front of the sign keeps the sum a float.
TEST_CASE("a shortcut in front of the sign") {
  const Map image{4, 4, 5, dyadic(80, 10)};
  const Floats weights = dyadic(5 * 9 * 5, 11);
  Builder builder("shortcut");
  const Tensor x = builder.input("x", Type::f32, 4, 4, 5);
  const Tensor bits = builder.pointwise(x, Pointwise().sign());
  const Conv2d layer = Conv2d(5, 3, Weights::signs(weights)).padding(1).add(x).sign();
  builder.output(builder.pointwise(builder.conv2d(bits, layer), Pointwise()));
  Map expected =
      convolved(mapped(image, [](float v, size_t) { return sign(v); }), signs(weights), 5, {3, 1, 1, 1}, 0);
  for (size_t i = 0; i < expected.values.size(); ++i) expected.values[i] += image.values[i];
  CHECK(forward(builder, image.values) == signs(expected.values));
}

void check_activation(Activation activation, float (*expected)(float), float tolerance) {
  const Floats values = dyadic(80, 12);
  Builder builder("activation");
  const Tensor x = builder.input("x", Type::f32, 4, 4, 5);
  builder.output(builder.pointwise(x, Pointwise().activation(activation)));
  const Floats got = forward(builder, values);
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected(values[i])) <= tolerance);
}

/// Numbers are part of the interface.
static_assert(PHONEBIT_ACTIVATION_SIGMOID == 5 && PHONEBIT_ACTIVATION_TANH == 6);
static_assert(PHONEBIT_ACTIVATION_GELU_TANH == 9 && PHONEBIT_ACTIVATION_MISH == 16);

TEST_CASE("activations") {
  check_activation(Activation::relu, [](float v) { return std::max(v, 0.0f); }, 0);
  check_activation(Activation::hard_tanh, [](float v) { return std::min(std::max(v, -1.0f), 1.0f); }, 0);
  // Polynomials in the engine: some units in the last place of numbers up to 1.
  check_activation(Activation::sigmoid, [](float v) { return 1 / (1 + std::exp(-v)); }, 1e-6f);
  check_activation(Activation::tanh, [](float v) { return std::tanh(v); }, 1e-6f);
  check_activation(Activation::round, [](float v) { return std::nearbyint(v); }, 0);
  check_activation(Activation::exp, [](float v) { return std::exp(v); }, 1e-5f);
  check_activation(Activation::elu, [](float v) { return v < 0 ? std::expm1(v) : v; }, 1e-6f);
  check_activation(Activation::softplus, [](float v) { return std::log1p(std::exp(v)); }, 1e-6f);
  check_activation(Activation::mish, [](float v) { return v * std::tanh(std::log1p(std::exp(v))); }, 1e-6f);
  check_activation(Activation::gelu, [](float v) { return v / 2 * std::erfc(-v * std::sqrt(0.5f)); }, 1e-6f);
}

TEST_CASE("facts") {
  const Floats weights = dyadic(3 * 8, 8);
  Builder builder("facts \"quoted\"");
  builder.output(builder.dense(builder.input("x", Type::u8, 2, 2, 2),
                               Dense(3, Weights::signs(weights)).levels(2, -255)));
  builder.labels({"cat", "dog", "gnu"});
  phonebit::Preprocessing rule;
  rule.low = -1.0;
  builder.preprocessing(rule);
  auto network = std::move(builder).network(cpu());
  REQUIRE(network.ok());
  CHECK(network->labels() == std::vector<std::string>({"cat", "dog", "gnu"}));
  CHECK(network->preprocessing().value().low == -1.0);
  CHECK(network->metadata().find("facts \\\"quoted\\\"") != std::string::npos);
  const std::vector<uint8_t> levels(8, 255);
  Floats scores(3), expected(3);
  for (size_t i = 0; i < weights.size(); ++i) expected[i / 8] += 255 * sign(weights[i]);
  REQUIRE(network->forward({levels}, {scores}).ok());
  CHECK(scores == expected);
}

void check_refused(phonebit_status status, const char* part) {
  CHECK(status == PHONEBIT_ERROR_INPUT);
  CHECK(phonebit_last_error() == doctest::Contains(part));
}

/// One thing wrong in each; the builder goes on afterwards.
struct Misuse {
  phonebit_builder* builder = nullptr;
  int32_t values = 0, bits = 0, levels = 0;
  phonebit_window window = PHONEBIT_INIT(phonebit_window);
  phonebit_weights weights = PHONEBIT_INIT(phonebit_weights);
  phonebit_conv2d conv = PHONEBIT_INIT(phonebit_conv2d);
  phonebit_epilogue epilogue = PHONEBIT_INIT(phonebit_epilogue);
  Floats numbers = dyadic(2 * 9 * 4, 9);

  Misuse() {
    CHECK(phonebit_builder_create("misuse", &builder) == PHONEBIT_OK);
    CHECK(phonebit_builder_input(builder, "x", PHONEBIT_TYPE_F32, 5, 5, 4, &values) == PHONEBIT_OK);
    CHECK(phonebit_builder_input(builder, "u", PHONEBIT_TYPE_U8, 5, 5, 4, &levels) == PHONEBIT_OK);
    epilogue.output = PHONEBIT_OUTPUT_SIGNS;
    CHECK(phonebit_builder_pointwise(builder, values, "bits", &epilogue, &bits) == PHONEBIT_OK);
    window.kernel_height = window.kernel_width = 3;
    weights.is_binary = 1;
    weights.values = {numbers.data(), numbers.size()};
    conv.out_channels = 2;
    conv.window = &window;
    conv.weights = &weights;
    conv.epilogue = &epilogue;
  }
  ~Misuse() { phonebit_builder_destroy(builder); }
  Misuse(const Misuse&) = delete;
  Misuse& operator=(const Misuse&) = delete;

  void refused(int32_t input, const char* part) {
    int32_t tensor = -7;
    check_refused(phonebit_builder_conv2d(builder, input, &conv, &tensor), part);
    CHECK(tensor == -7);
  }
};

TEST_CASE("misused convolutions") {
  const auto with = [](const char* part, void (*spoil)(Misuse&), int32_t Misuse::* input = & Misuse::bits) {
    Misuse use;
    spoil(use);
    use.refused(use.*input, part);
  };
  with("tensor 99", [](Misuse& m) { m.bits = 99; });
  with("tensor 0", [](Misuse& m) { m.bits = 0; });
  with("window: got NULL", [](Misuse& m) { m.conv.window = nullptr; });
  with("weights: got NULL", [](Misuse& m) { m.conv.weights = nullptr; });
  with("struct_size is 0", [](Misuse& m) { m.conv.struct_size = 0; });
  with("struct_size is 0", [](Misuse& m) { m.epilogue.struct_size = 0; });
  with("out_channels is 0", [](Misuse& m) { m.conv.out_channels = 0; });
  with("weights are 72, expected 108", [](Misuse& m) { m.conv.out_channels = 3; });
  with("groups=3 does not divide 4", [](Misuse& m) { m.conv.groups = 3; });
  with("groups=-1", [](Misuse& m) { m.conv.groups = -1; });
  with("stride of the height is -1", [](Misuse& m) { m.window.stride_height = -1; });
  with("kernel of the width is 0", [](Misuse& m) { m.window.kernel_width = 0; });
  with("padding of the width is 3", [](Misuse& m) { m.window.pad_right = 3; });
  with("kernel of the height is 2147483647", [](Misuse& m) { m.window.kernel_height = 2147483647; });
  with("does not fit the padded height of 5", [](Misuse& m) { m.window.kernel_height = 6; });
  with("pad_value is 2", [](Misuse& m) { m.conv.pad_value = 2; });
  with("expected 0, because", [](Misuse& m) { m.conv.pad_value = 1; }, &Misuse::values);
  with("u8, which meets signs only", [](Misuse& m) { m.weights.is_binary = 0; }, &Misuse::levels);
  with("input_mul and input_add", [](Misuse& m) { m.conv.input_mul = 2; });
  with("exceed 32-bit", [](Misuse& m) { m.conv.input_mul = 1 << 28; }, &Misuse::levels);
  with("no weights", [](Misuse& m) { m.weights.values = {nullptr, 0}; });
  with("got NULL, expected 72 numbers", [](Misuse& m) { m.weights.values.data = nullptr; });
  with("weight 3 is nan", [](Misuse& m) { m.numbers[3] = std::nanf(""); });
  with("this name is taken", [](Misuse& m) { m.conv.name = "bits"; });
  with("activation in front of the sign",
       [](Misuse& m) { m.epilogue.activation = PHONEBIT_ACTIVATION_RELU; });
  with("activation: got 17", [](Misuse& m) { m.epilogue.activation = 17; });
  with("activation: got -1", [](Misuse& m) { m.epilogue.activation = -1; });
  with("output: got 2", [](Misuse& m) { m.epilogue.output = 2; });
  with("'x' is f32 of 5x5x4, expected f32 of 3x3x2", [](Misuse& m) { m.epilogue.added = m.values; });
  with("scale has 3 numbers", [](Misuse& m) { m.epilogue.scale = {m.numbers.data(), 3}; });
  with("slopes belong", [](Misuse& m) { m.epilogue.slopes = {m.numbers.data(), 2}; });
}

TEST_CASE("misuse") {
  Misuse use;
  int32_t tensor = 0;
  const uint32_t words[18] = {16};
  use.weights.packed = {words, 18};
  use.refused(use.bits, "got both");
  use.weights.values = {nullptr, 0};
  use.refused(use.bits, "word 0 has bits after the 4 channels");
  use.weights.is_binary = 0;
  use.refused(use.values, "set is_binary");

  auto pool = PHONEBIT_INIT(phonebit_pool);
  pool.window = &use.window;
  check_refused(phonebit_builder_max_pool(use.builder, use.levels, &pool, &tensor), "'u' is u8");
  check_refused(phonebit_builder_average_pool(use.builder, use.bits, &pool, &tensor), "'bits' is bits");
  pool.gamma = {use.numbers.data(), 4};
  check_refused(phonebit_builder_max_pool(use.builder, use.values, &pool, &tensor), "gamma");
  pool.gamma = {nullptr, 0};
  use.window.kernel_height = 2;  // taps at -1 and 6 of 5 rows
  use.window.dilation_height = 7;
  use.window.pad_top = 1;
  use.window.pad_bottom = 3;
  check_refused(phonebit_builder_average_pool(use.builder, use.values, &pool, &tensor),
                "height 0 of the output has no tap");
  check_refused(phonebit_builder_softmax(use.builder, use.bits, nullptr, &tensor), "no f32");
  check_refused(phonebit_builder_input(use.builder, "x", PHONEBIT_TYPE_U8, 1, 1, 1, &tensor), "taken");
  check_refused(phonebit_builder_input(use.builder, "y", PHONEBIT_TYPE_BIT, 1, 1, 1, &tensor), "type is bit");
  check_refused(phonebit_builder_input(use.builder, "y", PHONEBIT_TYPE_U8, 1, 0, 1, &tensor), "1x0x1");
  check_refused(phonebit_builder_input(use.builder, "y", PHONEBIT_TYPE_U8, 1 << 20, 1 << 20, 1, &tensor),
                "more elements");
  check_refused(phonebit_builder_input(use.builder, "", PHONEBIT_TYPE_U8, 1, 1, 1, &tensor), "0 bytes");
  check_refused(phonebit_builder_input(nullptr, "y", PHONEBIT_TYPE_U8, 1, 1, 1, &tensor),
                "builder: got NULL");
  check_refused(phonebit_builder_create(nullptr, nullptr), "NULL");
  check_refused(phonebit_builder_output(use.builder, use.values), "already");

  phonebit_network* network = nullptr;
  check_refused(phonebit_builder_network(use.builder, nullptr, &network), "no output");
  CHECK(phonebit_builder_output(use.builder, use.bits) == PHONEBIT_OK);
  check_refused(phonebit_builder_output(use.builder, use.bits), "already");
  const char* const one_label[] = {"cat"};
  CHECK(phonebit_builder_set_labels(use.builder, one_label, 1) == PHONEBIT_OK);
  check_refused(phonebit_builder_network(use.builder, nullptr, &network),
                "labels: got 1, expected one for each of 4");
  CHECK(phonebit_builder_set_labels(use.builder, nullptr, 0) == PHONEBIT_OK);
  phonebit_options* options = nullptr;
  CHECK(phonebit_options_create(&options) == PHONEBIT_OK);
  CHECK(phonebit_options_set_device(options, "cpu") == PHONEBIT_OK);
  CHECK(phonebit_builder_network(use.builder, options, &network) == PHONEBIT_OK);
  phonebit_network_destroy(network);
  phonebit_options_destroy(options);
  phonebit_builder_destroy(nullptr);
}

/// The wrapper keeps the first error.
TEST_CASE("the first error stays") {
  Builder builder("errors");
  const Tensor x = builder.input("x", Type::f32, 4, 4, 5);
  const Floats few(7);
  const Tensor y = builder.conv2d(x, Conv2d(5, 3, Weights::values(few)));
  builder.output(builder.max_pool(y, Pool(2)));
  CHECK(builder.error().text.find("weights are 7, expected 225") != std::string::npos);
  CHECK(builder.network(cpu()).error().text == builder.error().text);
  CHECK(builder.save("/dev/null").error().text == builder.error().text);

  Builder huge("huge");
  const Floats large(1, std::numeric_limits<float>::max()), zero(1, 0.0f);
  const Floats filters(9, 1.0f);
  const Tensor bit = huge.pointwise(huge.input("x", Type::f32, 3, 3, 1), Pointwise().sign());
  huge.conv2d(bit, Conv2d(1, 3, Weights::signs(filters)).scale(large).norm({zero, {}, {}, {}}).sign());
  CHECK(huge.error().text.find("no number for the accumulator -9") != std::string::npos);
  Builder flat("flat");
  flat.pointwise(flat.input("x", Type::f32, 3, 3, 1), Pointwise().norm({{}, {}, {}, zero, 0.0f}));
  CHECK(flat.error().text.find("larger epsilon") != std::string::npos);
}

TEST_CASE("binary convolutions") {
  for (const int channels : {31, 32, 33})
    for (const int pad_value : {-1, 0, 1}) check_binary_convolution(channels, 33, {3, 2, 1, 1}, pad_value);
  check_binary_convolution(64, 6, {3, 1, 1, 2}, 0);
  check_binary_convolution(40, 40, {3, 1, 1, 40}, 1);
}

}  // namespace
