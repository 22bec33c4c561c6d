// Pools, depthwise convolutions, element-wise layers, softmax and the epilogue of every supported instruction
// set, against plain loops written from docs/format.md.
// All instruction sets see the same cases.
#include "kernel_check.h"

namespace check {
namespace {

enum class Reduction { kDepthwise, kMaximum, kAverage };

/// The sum of a window's taps in the order of averages.
class BlockedSum {
 public:
  explicit BlockedSum(const ConvShape& s)
      : rows_(s.kernel_w < kTaps ? kTaps / s.kernel_w : 1),
        columns_((s.kernel_w + kTaps - 1) / kTaps),
        blocks_((size_t)(s.kernel_h + rows_ - 1) / rows_ * columns_) {}
  void add(int ky, int kx, float x) { blocks_[(size_t)(ky / rows_) * columns_ + kx / kTaps] += x; }
  float sum() const {
    float sum = 0.0f, rest = 0.0f;
    for (const float block : blocks_) {
      const float added = block + rest, after = sum + added, of_added = after - sum;
      rest = (sum - (after - of_added)) + (added - of_added);
      if (std::isnan(rest)) rest = 0.0f;
      sum = after;
    }
    return sum;
  }

 private:
  static constexpr int kTaps = 14;
  int rows_, columns_;
  std::vector<float> blocks_;
};

/// Half of the time a pool has a part of its map's channels, from `first` on.
void check_float_window(const Isa& isa, Random& random, ConvShape s, Reduction reduction) {
  const int channels = s.out_c;
  const bool is_part = reduction != Reduction::kDepthwise && random() % 2;
  const int first = is_part ? pick(random, 0, 5) : 0;
  if (is_part) s.in_c += first + pick(random, 0, 5);
  const std::vector<float> input = floats_or_tiny_ones(random, (size_t)s.in_h * s.in_w * s.in_c);
  const std::vector<float> weights = floats(random, (size_t)s.kernel_h * s.kernel_w * s.in_c);
  const int pixels = s.out_h * s.out_w;
  const RandomEpilogue epilogue(random, pixels, channels);
  INFO(describe(s), epilogue.text);

  std::vector<float> main;
  for (int p = 0; p < pixels; p++) {
    for (int c = 0; c < channels; c++) {
      float v = reduction == Reduction::kMaximum ? -INFINITY : 0.0f;
      BlockedSum sum(s);
      int taps = 0;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
        if (from < 0) return;
        const float x = input[(size_t)from * s.in_c + first + c];
        taps++;
        if (reduction == Reduction::kDepthwise)
          v = multiply_add(isa, x, weights[((size_t)ky * s.kernel_w + kx) * s.in_c + c], v);
        if (reduction == Reduction::kMaximum) v = std::fmax(x, v);
        if (reduction == Reduction::kAverage) sum.add(ky, kx, x);
      });
      // The format promises that a pooling window has a tap inside the map; other cases are not compared.
      if (reduction != Reduction::kDepthwise && taps == 0) return;
      main.push_back(reduction == Reduction::kAverage ? sum.sum() / (float)taps : v);
    }
  }

  Outputs out(random, pixels, channels);
  const Epilogue e = epilogue.make(out);
  const std::vector<int> rows = random_cuts(random, s.out_h);
  for (size_t i = 0; i + 1 < rows.size(); i++) {
    if (reduction == Reduction::kDepthwise)
      isa.values->depthwise_f32(s, weights.data(), input.data(), rows[i], rows[i + 1], e, kNeverStop);
    if (reduction == Reduction::kMaximum)
      isa.values->max_pool_f32(s, input.data() + first, rows[i], rows[i + 1], e, kNeverStop);
    if (reduction == Reduction::kAverage)
      isa.values->average_pool_f32(s, input.data() + first, rows[i], rows[i + 1], e, kNeverStop);
  }
  compare(out, epilogue, main);
}

void float_window(const Isa& isa, Random& random, Reduction reduction) {
  check_float_window(isa, random, random_shape(random, pick_channels(random), 0, 12), reduction);
}

/// So large that kernels ask between pieces of it whether to end: about square, or one row.
ConvShape large_window(Random& random, int channels) {
  ConvShape s = random_shape(random, channels, 0, 4);
  const bool is_row = random() % 2;
  s.kernel_h = is_row ? 1 : 280, s.kernel_w = is_row ? 70000 : 260;
  s.dilation_h = s.dilation_w = 1;
  s.in_h = s.kernel_h + pick(random, 0, 1), s.in_w = s.kernel_w + pick(random, 0, 2);
  s.pad_top = s.pad_bottom = 0;
  s.pad_left = pick(random, 0, 2), s.pad_right = pick(random, 0, 2);
  s.out_h = (s.in_h - s.kernel_h) / s.stride_h + 1;
  s.out_w = (s.in_w + s.pad_left + s.pad_right - s.kernel_w) / s.stride_w + 1;
  return s;
}

void large_windows(const Isa& isa, Random& random) {
  for (const auto reduction : {Reduction::kDepthwise, Reduction::kMaximum, Reduction::kAverage})
    check_float_window(isa, random, large_window(random, pick_one(random, {1, 5, 17})), reduction);
}

/// Half of the time it has a part of its map's words, from `begin` on.
void check_bit_pool(const Isa& isa, Random& random, ConvShape s) {
  const bool is_part = random() % 2;
  const int begin = is_part ? pick(random, 0, 2) : 0;
  if (is_part) s.out_c = 32 * words(s.out_c);
  if (is_part) s.in_c = s.out_c + 32 * (begin + pick(random, 0, 2));
  const int channels = s.out_c, step = words(s.in_c);
  const std::vector<uint32_t> input = bits(random, (size_t)s.in_h * s.in_w, s.in_c);
  const std::vector<uint32_t> flip = bits(random, 1, channels);
  const bool flips = random() % 2;
  INFO(describe(s), flips ? " flips" : "");
  Outputs out(s.out_h * s.out_w, channels, s.in_c - channels);
  const std::vector<int> rows = random_cuts(random, s.out_h);
  for (size_t i = 0; i + 1 < rows.size(); i++)
    isa.values->max_pool_bits(s, flips ? flip.data() : nullptr, input.data() + begin, rows[i], rows[i + 1],
                              out.bit_words.data(), kNeverStop);
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < s.out_h * s.out_w; p++) {
    std::vector<uint32_t> expected(words(channels));
    for (int c = 0; c < channels; c++) {
      const bool minimum = flips && sign_of_bit(flip.data(), c) > 0;
      int v = minimum ? 1 : -1, taps = 0;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int, int, int from) {
        if (from < 0) return;
        const int x = sign_of_bit(input.data() + (size_t)from * step + begin, c);
        v = minimum ? (x < v ? x : v) : (x > v ? x : v);
        taps++;
      });
      if (taps == 0) return;
      expected[c / 32] |= (uint32_t)(v > 0) << (c % 32);
    }
    out.compare_bits(p, expected);
  }
}

void bit_pool(const Isa& isa, Random& random) {
  const int channels = random() % 3 ? pick_channels(random) : pick_one(random, {256, 520, 700});
  check_bit_pool(isa, random, random_shape(random, channels, 0, 12));
}

/// Rows that are longer than what is reduced at a time, and windows that are.
void wide_bit_pool(const Isa& isa, Random& random) {
  ConvShape s = random_shape(random, pick_one(random, {1, 32, 33, 64, 96, 100, 128}), 0, 4);
  s.in_w = pick(random, 1, 5000);
  if (random() % 4 == 0) s.dilation_w = pick(random, 1, 2500);
  const int span = (s.kernel_w - 1) * s.dilation_w + 1;
  s.pad_left = pick(random, 0, span / 2), s.pad_right = pick(random, 0, span / 2);
  if (s.in_w < span) s.in_w = span;
  s.out_w = (s.in_w + s.pad_left + s.pad_right - span) / s.stride_w + 1;
  check_bit_pool(isa, random, s);
}

void check_binary_depthwise(const Isa& isa, Random& random, ConvShape s) {
  s.pad_value = pick(random, -1, 1);
  const std::vector<uint32_t> input = bits(random, (size_t)s.in_h * s.in_w, s.in_c);
  const std::vector<uint32_t> weights = bits(random, (size_t)s.kernel_h * s.kernel_w, s.in_c);
  std::vector<int32_t> thresholds(s.in_c);
  for (int32_t& t : thresholds) t = random() % 8 ? pick(random, -6, 6) : random() % 2 ? INT32_MIN : INT32_MAX;
  const int pixels = s.out_h * s.out_w;
  const RandomEpilogue epilogue(random, pixels, s.in_c);
  const bool threshold_form = random() % 2;
  INFO(describe(s), threshold_form ? " thresholds" : epilogue.text);
  std::vector<float> main;
  for (int p = 0; p < pixels; p++) {
    for (int c = 0; c < s.in_c; c++) {
      int acc = 0;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
        const int x = from < 0 ? s.pad_value : sign_of_bit(input.data() + (size_t)from * words(s.in_c), c);
        acc += x * sign_of_bit(weights.data() + (size_t)(ky * s.kernel_w + kx) * words(s.in_c), c);
      });
      main.push_back((float)acc);
    }
  }
  Outputs out(random, pixels, s.in_c);
  const Epilogue e = epilogue.make(out);
  const AccumulatorSink sink = threshold_form ? out.threshold_sink() : AccumulatorSink{nullptr, 0, &e};
  const std::vector<int> rows = random_cuts(random, s.out_h);
  for (size_t i = 0; i + 1 < rows.size(); i++)
    isa.values->binary_depthwise(s, weights.data(), thresholds.data(), input.data(), rows[i], rows[i + 1],
                                 sink, kNeverStop);
  if (!threshold_form) return compare(out, epilogue, main);
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < pixels; p++) {
    std::vector<uint32_t> expected(words(s.in_c));
    for (int c = 0; c < s.in_c; c++)
      expected[c / 32] |= (uint32_t)((int)main[(size_t)p * s.in_c + c] >= thresholds[c]) << (c % 32);
    out.compare_bits(p, expected);
  }
}

void elementwise(const Isa& isa, Random& random) {
  const int channels = pick_channels(random), pixels = pick(random, 1, 70);
  const RandomEpilogue epilogue(random, pixels, channels);
  const int type = pick(random, 0, 2);
  INFO("type ", type, " ", pixels, "x", channels, epilogue.text);
  Outputs out(random, pixels, channels);
  const Epilogue e = epilogue.make(out);
  const int step = out.pixel_channels;  // operands have the output's channels
  std::vector<float> operand = floats(random, (size_t)pixels * step), main;
  std::vector<uint8_t> bytes(operand.size());
  for (uint8_t& byte : bytes) byte = (uint8_t)random();
  const std::vector<uint32_t> packed = bits(random, pixels, step);
  const std::vector<int> cuts = random_cuts(random, pixels);
  for (size_t i = 0; i + 1 < cuts.size(); i++) {
    if (type == 0) isa.values->elementwise_f32(operand.data(), cuts[i], cuts[i + 1], e, kNeverStop);
    if (type == 1) isa.values->elementwise_u8(bytes.data(), cuts[i], cuts[i + 1], e, kNeverStop);
    if (type == 2) isa.values->elementwise_bits(packed.data(), cuts[i], cuts[i + 1], e, kNeverStop);
  }
  for (int p = 0; p < pixels; p++) {
    for (int c = 0; c < channels; c++) {
      const size_t at = (size_t)p * step + c;
      main.push_back(type == 0   ? operand[at]
                     : type == 1 ? (float)bytes[at]
                                 : (float)sign_of_bit(packed.data() + (size_t)p * words(step), c));
    }
  }
  compare(out, epilogue, main);
}

/// A residual block may add in place: the shortcut's tensor is the output.
void in_place_add(const Isa& isa, Random& random) {
  const int channels = pick_channels(random), pixels = pick(random, 1, 40);
  const std::vector<float> main = floats(random, (size_t)pixels * channels);
  const std::vector<float> shortcut = floats(random, main.size());
  Outputs out(pixels, channels, 0);
  std::memcpy(out.value.data(), shortcut.data(), shortcut.size() * sizeof(float));
  EpilogueStep step = {};
  step.kind = StepKind::kAdd;
  step.tensor = out.value.data();
  step.tensor_pixel_stride = channels;
  const Epilogue e = {&step, 1, out.value.data(), nullptr, nullptr, channels, channels, 0};
  isa.values->elementwise_f32(main.data(), 0, pixels, e, kNeverStop);
  INFO(pixels, "x", channels);
  for (size_t i = 0; i < main.size(); i++)
    REQUIRE_MESSAGE(out.value.data()[i] == main[i] + shortcut[i], "element ", i);
}

double relative_error(float got, double expected) {
  // Below the smallest normal float only absolute accuracy is possible.
  return std::fabs(got - expected) / std::fmax(std::fabs(expected), 1.2e-38);
}

/// A function of a step, exactly, and its relative error: 2 units in the last place are 2.4e-7.
struct ExactFunction {
  StepKind kind;
  double (*exact)(double);
  double (*tolerance)(double x);
};

double sigmoid_argument(double x) { return 1.5957691216057308 * (x + 0.044715 * x * x * x); }

const ExactFunction kFunctions[] = {
    {StepKind::kSigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, [](double) { return 2.4e-7; }},
    {StepKind::kTanh, [](double x) { return std::tanh(x); }, [](double) { return 2.4e-7; }},
    {StepKind::kGelu, [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); },
     [](double x) { return x >= -1 ? 1e-6 : 1e-6 + 1.2e-7 * x * x; }},
    {StepKind::kGeluTanh, [](double x) { return x / (1.0 + std::exp(-sigmoid_argument(x))); },
     [](double x) { return x >= -1 ? 4.8e-7 : 4.8e-7 - 2.4e-7 * sigmoid_argument(x); }},
    {StepKind::kExp, [](double x) { return std::exp(x); }, [](double) { return 2.4e-7; }},
    {StepKind::kLog, [](double x) { return std::log(x); }, [](double) { return 1.2e-7; }},
    {StepKind::kSqrt, [](double x) { return std::sqrt(x); }, [](double) { return 1.2e-7; }},
    {StepKind::kReciprocal, [](double x) { return 1.0 / x; }, [](double) { return 6e-8; }},
    {StepKind::kElu, [](double x) { return x < 0 ? std::expm1(x) : x; }, [](double) { return 3.6e-7; }},
    {StepKind::kSoftplus, [](double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); },
     [](double) { return 2.4e-7; }},
    {StepKind::kMish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
     [](double x) { return x > -87 ? 4.8e-7 : -1.2e-7 * x; }},
};

/// They at many points and at the special ones.
void transcendental(const Isa& isa, Random& random) {
  std::vector<float> x = {0.0f,  -0.0f,  1e-40f, -1e-40f, 1e-20f, 0.625f, -0.625f,
                          88.0f, -88.0f, 104.0f, -104.0f, 1e30f,  -1e30f};
  for (int i = 0; i < 2000; i++) x.push_back(pick_float(random) * (float)(1 << pick(random, 0, 6)));
  x.push_back(INFINITY);
  x.push_back(-INFINITY);
  x.push_back(NAN);
  for (const ExactFunction& function : kFunctions) {
    EpilogueStep step = {};
    step.kind = function.kind;
    std::vector<float> y(x.size());
    const int count = (int)x.size();
    const Epilogue e = {&step, 1, y.data(), nullptr, nullptr, count, count, 0};
    isa.values->elementwise_f32(x.data(), 0, 1, e, kNeverStop);
    std::vector<float> scalar(x.size());
    const Epilogue e_scalar = {&step, 1, scalar.data(), nullptr, nullptr, count, count, 0};
    select_isa("scalar")->values->elementwise_f32(x.data(), 0, 1, e_scalar, kNeverStop);
    REQUIRE_MESSAGE(std::isnan(y.back()), "NaN became ", y.back());
    for (size_t i = 0; i + 1 < x.size(); i++) {
      INFO("kind ", (int)function.kind, " of ", digits(x[i]), ": got ", digits(y[i]));
      REQUIRE_MESSAGE(std::memcmp(&y[i], &scalar[i], 4) == 0, "scalar: ", digits(scalar[i]));
      const double exact = function.exact((double)x[i]);
      if (y[i] == (float)exact || (std::isnan(y[i]) && std::isnan(exact))) continue;  // infinities among them
      REQUIRE_MESSAGE(relative_error(y[i], exact) < function.tolerance((double)x[i]), "expected ",
                      digits(exact));
    }
  }
}

/// Halves to even and signs of zero, to the bit; what is too large to have a fraction stays.
void rounding(const Isa& isa, Random& random) {
  std::vector<float> x = {0.0f,       -0.0f,      1e-40f,      -1e-40f,    0.49999997f, -0.49999997f,
                          0.5f,       -0.5f,      0.50000006f, 1.5f,       2.5f,        -2.5f,
                          4194303.5f, 8388607.5f, -8388606.5f, 8388608.0f, 8388609.0f,  16777217.0f,
                          3e9f,       -1e30f,     INFINITY,    -INFINITY};
  for (int i = 0; i < 1000; i++) x.push_back((float)pick(random, -4001, 4001) / 2);
  for (int i = 0; i < 1000; i++) x.push_back(pick_float(random) * (float)(1 << pick(random, 0, 24)));
  x.push_back(NAN);
  EpilogueStep step = {};
  step.kind = StepKind::kRound;
  std::vector<float> y(x.size());
  const int count = (int)x.size();
  const Epilogue e = {&step, 1, y.data(), nullptr, nullptr, count, count, 0};
  isa.values->elementwise_f32(x.data(), 0, 1, e, kNeverStop);
  REQUIRE_MESSAGE(std::isnan(y.back()), "NaN became ", y.back());
  for (size_t i = 0; i + 1 < x.size(); i++) {
    const float expected = std::nearbyint(x[i]);
    REQUIRE_MESSAGE(std::memcmp(&y[i], &expected, 4) == 0, digits(x[i]), ": got ", digits(y[i]),
                    ", expected ", digits(expected));
  }
}

void softmax(const Isa& isa, Random& random, bool is_log) {
  const int channels = random() % 2 ? pick_channels(random) : 1000, pixels = pick(random, 1, 5);
  std::vector<float> x = floats(random, (size_t)pixels * channels);
  const float scale = (float)pick(random, 1, 100), shift = (float)pick(random, -1000, 1000);
  for (float& v : x) v = v * scale + shift;
  INFO(pixels, "x", channels);
  Guarded<float> out(x.size()), scalar(x.size());
  const ValueKernels &fast = *isa.values, &plain = *select_isa("scalar")->values;
  (is_log ? fast.log_softmax : fast.softmax)(x.data(), 0, pixels, channels, out.data());
  (is_log ? plain.log_softmax : plain.softmax)(x.data(), 0, pixels, channels, scalar.data());
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < pixels; p++) {
    const float* row = x.data() + (size_t)p * channels;
    double maximum = row[0], sum = 0;
    for (int c = 0; c < channels; c++) maximum = row[c] > maximum ? row[c] : maximum;
    for (int c = 0; c < channels; c++) sum += std::exp(row[c] - maximum);
    for (int c = 0; c < channels; c++) {
      const size_t at = (size_t)p * channels + c;
      const float got = out.data()[at];
      const double shifted = row[c] - maximum;
      INFO("channel ", c, ": got ", digits(got));
      REQUIRE_MESSAGE(std::memcmp(&got, &scalar.data()[at], 4) == 0, "scalar: ", digits(scalar.data()[at]));
      // x - most is rounded once: up to |x - most| * 2^-24 in the exponent, on top of the exponential and the
      // sum. Of the logarithm the difference is, too, and an error of the sum is one of its logarithm.
      const double expected = is_log ? shifted - std::log(sum) : std::exp(shifted) / sum;
      const double tolerance =
          is_log ? 2e-6 + std::fabs(shifted) * 1.2e-7 : expected * (2e-6 + std::fabs(shifted) * 6e-8) + 1e-38;
      REQUIRE_MESSAGE(std::fabs(got - expected) <= tolerance, "expected ", digits(expected));
    }
  }
}

/// The sum over equal channels is their exact number, so that the result is the logarithm alone.
void logarithm(const Isa& isa, Random&) {
  const int stride = (int)parameter("PHONEBIT_TEST_STRIDE", 1);
  for (int channels = 1; channels <= 5000; channels += stride) {
    const std::vector<float> x(channels, 3.0f);
    std::vector<float> out(x.size());
    isa.values->log_softmax(x.data(), 0, 1, channels, out.data());
    const double expected = -std::log((double)channels);
    REQUIRE_MESSAGE(std::fabs(out[0] - expected) <= 1.2e-7 * std::fabs(expected), "-log(", channels,
                    "): got ", digits(out[0]), ", expected ", digits(expected));
  }
}

/// NaN stays one: nothing downstream may take it for a probability.
void softmax_of_nan(const Isa& isa, Random&) {
  for (const auto function : {isa.values->softmax, isa.values->log_softmax}) {
    const std::vector<float> x = {1.0f, NAN, 2.0f};
    std::vector<float> out(x.size());
    function(x.data(), 0, 1, (int)x.size(), out.data());
    for (const float v : out) REQUIRE_MESSAGE(std::isnan(v), v);
  }
}

void binary_depthwise(const Isa& isa, Random& random) {
  check_binary_depthwise(isa, random, random_shape(random, pick_channels(random), 0, 12));
}

void large_windows_of_bits(const Isa& isa, Random& random) {
  check_bit_pool(isa, random, large_window(random, pick_one(random, {1, 40})));
  check_binary_depthwise(isa, random, large_window(random, pick_one(random, {1, 40})));
}

/// Planes of the epilogue: bit b of the number of its channel's thresholds that a value reaches.
void planes_of_levels(const Isa& isa, Random& random) {
  const int pixels = pick(random, 1, 40), channels = 32 * pick(random, 1, 5), planes = pick(random, 1, 4);
  const int count = pick(random, 1, (1 << planes) - 1);
  const std::vector<float> input = floats(random, (size_t)pixels * channels);
  std::vector<float> thresholds((size_t)count * channels);
  for (int c = 0; c < channels; c++) {
    std::vector<float> own = floats(random, count);
    std::sort(own.begin(), own.end());
    if (random() % 4 == 0) own.back() = INFINITY;
    if (random() % 4 == 0) own[0] = input[c];  // reached exactly
    std::sort(own.begin(), own.end());
    for (int i = 0; i < count; i++) thresholds[(size_t)i * channels + c] = own[i];
  }
  std::vector<Outputs> outputs;
  for (int plane = 0; plane < planes; plane++) outputs.emplace_back(pixels, channels, 40);
  Epilogue e = {};
  for (int plane = 0; plane < planes; plane++) e.planes[plane] = outputs[plane].bit_words.data();
  e.threshold = thresholds.data(), e.level_count = count, e.level_stride = channels, e.plane_count = planes;
  e.channels = e.pixel_channels = channels, e.pixel_words = outputs[0].pixel_words;
  isa.values->elementwise_f32(input.data(), 0, pixels, e, kNeverStop);
  INFO(planes, " planes of ", count, " thresholds, ", channels, " channels");
  for (int plane = 0; plane < planes; plane++) {
    REQUIRE_MESSAGE(outputs[plane].intact(), "written outside the output");
    for (int p = 0; p < pixels; p++) {
      std::vector<uint32_t> expected(words(channels));
      for (int c = 0; c < channels; c++) {
        int level = 0;
        for (int i = 0; i < count; i++)
          level += input[(size_t)p * channels + c] >= thresholds[(size_t)i * channels + c];
        expected[c / 32] |= (uint32_t)(level >> plane & 1) << (c % 32);
      }
      outputs[plane].compare_bits(p, expected);
    }
  }
}

/// Whose work a caller may end asks for that often, and ends.
void stopped(const Isa& isa, Random& random) {
  ConvShape s = large_window(random, 8);
  s.in_h = s.kernel_h = 2000, s.in_w = s.kernel_w = 1000, s.out_h = 1, s.out_w = 1,
  s.pad_left = s.pad_right = 0;
  const size_t values = (size_t)s.in_h * s.in_w * s.in_c;
  const std::vector<float> input(values), weights(values);
  const std::vector<uint32_t> packed(values / s.in_c);
  std::vector<float> value(values);
  std::vector<uint32_t> packed_result(1);
  const std::vector<int32_t> thresholds(s.in_c);
  Epilogue e = {};
  e.value = value.data(), e.channels = e.pixel_channels = s.in_c;
  const AccumulatorSink sink = {packed_result.data(), 1, nullptr};
  const ValueKernels& k = *isa.values;
  const auto check = [&](const char* what, const auto& run) {
    int asked = 0, allowed = INT32_MAX;
    struct Asker {
      int &asked, &allowed;
    } asker = {asked, allowed};
    const Stop stop = {[](const void* context) {
                         const auto& own = *static_cast<const Asker*>(context);
                         return ++own.asked > own.allowed;
                       },
                       &asker};
    run(stop);
    // 16 million values, or words of 8 channels.
    INFO(what);
    CHECK(asked >= 1);
    const int all = asked;
    asked = 0, allowed = all / 2;
    run(stop);
    INFO("asks ", all, " times unless it is ended");
    CHECK(asked == allowed + 1);
  };
  check("max_pool_f32", [&](const Stop& stop) { k.max_pool_f32(s, input.data(), 0, 1, e, stop); });
  check("average_pool_f32", [&](const Stop& stop) { k.average_pool_f32(s, input.data(), 0, 1, e, stop); });
  check("depthwise_f32",
        [&](const Stop& stop) { k.depthwise_f32(s, weights.data(), input.data(), 0, 1, e, stop); });
  check("binary_depthwise", [&](const Stop& stop) {
    isa.values->binary_depthwise(s, packed.data(), thresholds.data(), packed.data(), 0, 1, sink, stop);
  });
  const int pixels = s.in_h * s.in_w;
  check("elementwise_f32", [&](const Stop& stop) { k.elementwise_f32(input.data(), 0, pixels, e, stop); });
  const std::vector<uint8_t> bytes(values);
  check("elementwise_u8", [&](const Stop& stop) { k.elementwise_u8(bytes.data(), 0, pixels, e, stop); });
  check("elementwise_bits", [&](const Stop& stop) { k.elementwise_bits(packed.data(), 0, pixels, e, stop); });
  // Windows of bits are ended between pixels.
  s.kernel_h = s.kernel_w = 500, s.out_h = 1501, s.out_w = 501;
  std::vector<uint32_t> pooled((size_t)s.out_h * s.out_w);
  check("max_pool_bits",
        [&](const Stop& stop) { k.max_pool_bits(s, nullptr, packed.data(), 0, 20, pooled.data(), stop); });
}

TEST_CASE("depthwise_f32") {
  for_each_isa(&Isa::values, test_cases(150),
               [](const Isa& isa, Random& r) { float_window(isa, r, Reduction::kDepthwise); });
}
TEST_CASE("max_pool_f32") {
  for_each_isa(&Isa::values, test_cases(150),
               [](const Isa& isa, Random& r) { float_window(isa, r, Reduction::kMaximum); });
}
TEST_CASE("average_pool_f32") {
  for_each_isa(&Isa::values, test_cases(150),
               [](const Isa& isa, Random& r) { float_window(isa, r, Reduction::kAverage); });
}
TEST_CASE("planes of levels") { for_each_isa(&Isa::values, test_cases(150), planes_of_levels); }
TEST_CASE("large windows") { for_each_isa(&Isa::values, 2, large_windows); }
TEST_CASE("large windows of bits") { for_each_isa(&Isa::values, 2, large_windows_of_bits); }
TEST_CASE("work that a caller ends") { for_each_isa(&Isa::values, 1, stopped); }
TEST_CASE("max_pool_bits") { for_each_isa(&Isa::values, test_cases(150), bit_pool); }
TEST_CASE("max_pool_bits of wide maps") { for_each_isa(&Isa::values, test_cases(150) / 5, wide_bit_pool); }
TEST_CASE("binary_depthwise") { for_each_isa(&Isa::values, test_cases(150), binary_depthwise); }
TEST_CASE("elementwise") { for_each_isa(&Isa::values, test_cases(150), elementwise); }
TEST_CASE("an addition in place") { for_each_isa(&Isa::values, test_cases(150), in_place_add); }
TEST_CASE("transcendental functions") { for_each_isa(&Isa::values, 3, transcendental); }
TEST_CASE("rounding") { for_each_isa(&Isa::values, 3, rounding); }
TEST_CASE("softmax") {
  for_each_isa(&Isa::values, test_cases(150), [](const Isa& isa, Random& r) { softmax(isa, r, false); });
}
TEST_CASE("log_softmax") {
  for_each_isa(&Isa::values, test_cases(150), [](const Isa& isa, Random& r) { softmax(isa, r, true); });
}
TEST_CASE("logarithm") { for_each_isa(&Isa::values, 1, logarithm); }
TEST_CASE("softmax of NaN") { for_each_isa(&Isa::values, 1, softmax_of_nan); }

}  // namespace
}  // namespace check
