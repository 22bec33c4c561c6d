// Every binary convolution kernel of every supported instruction set equals a plain loop over +1, -1 and
// padding. Maps, weights, thresholds and the way that work is split are random; geometries straddle each
// boundary of the kernels. Outputs lie between guard words.
#include "kernel_check.h"
#include "select.h"

namespace check {
namespace {

struct Window {
  int size, stride, dilation, pad_before, pad_after;
};

struct Case {
  int in_h, in_w, in_c, out_c;
  Window rows, columns;
  int pad_value;
  bool alike = false;  // filters that differ in few bits
};

/// Returns false when no window fits.
bool shape_of(const Case& c, ConvShape* s) {
  *s = ConvShape{};
  s->in_h = c.in_h, s->in_w = c.in_w, s->in_c = c.in_c, s->out_c = c.out_c;
  s->kernel_h = c.rows.size, s->kernel_w = c.columns.size;
  s->stride_h = c.rows.stride, s->stride_w = c.columns.stride;
  s->dilation_h = c.rows.dilation, s->dilation_w = c.columns.dilation;
  s->pad_top = c.rows.pad_before, s->pad_bottom = c.rows.pad_after;
  s->pad_left = c.columns.pad_before, s->pad_right = c.columns.pad_after;
  s->pad_value = c.pad_value, s->input_mul = 1, s->input_add = 0;
  const int room_h = c.in_h + s->pad_top + s->pad_bottom - ((s->kernel_h - 1) * s->dilation_h + 1);
  const int room_w = c.in_w + s->pad_left + s->pad_right - ((s->kernel_w - 1) * s->dilation_w + 1);
  if (room_h < 0 || room_w < 0) return false;
  s->out_h = room_h / s->stride_h + 1, s->out_w = room_w / s->stride_w + 1;
  return true;
}

struct Data {
  std::vector<uint32_t> input, weights;
  std::vector<int32_t> accumulators;  // [pixel][channel], by the plain loop
};

/// acc = sum over taps and channels of w * x; a tap outside the map has x = pad_value. The mathematics,
/// nothing else.
void plain_loop(const ConvShape& s, Data* data) {
  const int words_in = words(s.in_c);
  for (int p = 0; p < s.out_h * s.out_w; ++p) {
    for (int c = 0; c < s.out_c; ++c) {
      int acc = 0;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
        const uint32_t* tap = &data->weights[(((size_t)c * s.kernel_h + ky) * s.kernel_w + kx) * words_in];
        const uint32_t* pixel = from < 0 ? nullptr : &data->input[(size_t)from * words_in];
        for (int i = 0; i < s.in_c; ++i)
          acc += sign_of_bit(tap, i) * (from < 0 ? s.pad_value : sign_of_bit(pixel, i));
      });
      data->accumulators.push_back(acc);
    }
  }
}

/// Runs `kernel` as an executor with several threads would: rows and ranges in pieces, in random order.
void run_split(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s, const Data& data,
               const int32_t* thresholds, const AccumulatorSink& sink) {
  AlignedBytes packed(kernel.packed_bytes(s)), scratch(kernel.scratch_bytes(s));
  kernel.pack_weights(s, data.weights.data(), thresholds, packed.data);
  const int rows = kernel.prepare_rows(s);
  const int cut = rows > 0 ? (int)(random() % (rows + 1)) : 0;
  if (cut < rows) kernel.prepare_input(s, data.input.data(), scratch.data, cut, rows);
  if (cut > 0) kernel.prepare_input(s, data.input.data(), scratch.data, 0, cut);

  const int pixels = s.out_h * s.out_w;
  const int blocks = (s.out_c + kChannelBlock - 1) / kChannelBlock;
  const int pixel_cut = random() % 2 != 0 ? (int)(random() % (pixels + 1)) : pixels;
  const int block_cut = random() % 2 != 0 ? (int)(random() % (blocks + 1)) : blocks;
  const int pixel_edges[3] = {0, pixel_cut, pixels};
  const int block_edges[3] = {0, block_cut, blocks};
  for (int i = 1; i >= 0; --i) {
    for (int j = 0; j < 2; ++j) {
      const OutputRange range = {pixel_edges[i], pixel_edges[i + 1], block_edges[j], block_edges[j + 1]};
      kernel.run(s, packed.data, data.input.data(), scratch.data, range, sink);
    }
  }
}

void check_thresholds(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s,
                      const Data& data) {
  const int pixels = s.out_h * s.out_w;
  std::vector<int32_t> thresholds(s.out_c);
  for (int c = 0; c < s.out_c; ++c) {
    // Mostly a value that occurs, so that >= and > differ; sometimes the ends of what can occur, and the extremes,
    // which mean always and never.
    const uint32_t pick = random() % 16;
    thresholds[c] = data.accumulators[(size_t)(random() % pixels) * s.out_c + c] + (int)(random() % 3) - 1;
    if (pick == 0) thresholds[c] = INT32_MIN;
    if (pick == 1) thresholds[c] = INT32_MAX;
    const int end = s.kernel_h * s.kernel_w * s.in_c + (int)(random() % 3) - 1;
    if (pick == 2) thresholds[c] = end;
    if (pick == 3) thresholds[c] = -end;
  }
  INFO("threshold form");
  Outputs out(random, pixels, s.out_c);
  run_split(random, kernel, s, data, thresholds.data(), out.threshold_sink());
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < pixels; ++p) {
    std::vector<uint32_t> expected(words(s.out_c));
    for (int c = 0; c < s.out_c; ++c)
      expected[c / 32] |= (uint32_t)(data.accumulators[p * s.out_c + c] >= thresholds[c]) << (c % 32);
    out.compare_bits(p, expected);
  }
}

void check_epilogue(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s,
                    const Data& data) {
  const int pixels = s.out_h * s.out_w;
  Outputs out(random, pixels, s.out_c);
  std::vector<float> scale(s.out_c), bias(s.out_c), shortcut((size_t)pixels * s.out_c), threshold(s.out_c);
  for (int c = 0; c < s.out_c; ++c) {
    scale[c] = (float)(int)(random() % 17 - 8) / 4;
    bias[c] = (float)(int)(random() % 65 - 32);
    threshold[c] = (float)(int)(random() % 9 - 4);
  }
  // The shortcut is added in place: a kernel that runs an epilogue twice for one pixel is found out here.
  float* value = out.value.data();
  for (size_t i = 0; i < shortcut.size(); ++i) {
    shortcut[i] = (float)(int)(random() % 65 - 32);
    value[i / s.out_c * out.pixel_channels + i % s.out_c] = shortcut[i];
  }
  EpilogueStep steps[2] = {};
  steps[0].kind = StepKind::kScaleBias, steps[0].a = scale.data(), steps[0].b = bias.data();
  steps[1].kind = StepKind::kAdd, steps[1].tensor = value, steps[1].tensor_pixel_stride = out.pixel_channels;
  const Epilogue epilogue = {
      steps, 2, value, out.bit_words.data(), threshold.data(), s.out_c, out.pixel_channels, out.pixel_words};
  INFO("epilogue form");
  run_split(random, kernel, s, data, nullptr, {nullptr, 0, &epilogue});
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < pixels; ++p) {
    std::vector<uint32_t> expected_bits(words(s.out_c));
    for (int c = 0; c < s.out_c; ++c) {
      const size_t i = (size_t)p * s.out_c + c;
      // Quarters and small integers: every step is exact in float32, so equality is the right test.
      const float expected = (float)data.accumulators[i] * scale[c] + bias[c] + shortcut[i];
      const float got = value[(size_t)p * out.pixel_channels + c];
      if (got != expected) FAIL("pixel ", p, " channel ", c, ": got ", got, ", expected ", expected);
      expected_bits[c / 32] |= (uint32_t)(expected >= threshold[c]) << (c % 32);
    }
    out.compare_bits(p, expected_bits);
  }
}

/// Runs the planes of levels as an executor would: rows and pixels in two pieces.
void check_planes(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s, const Data& low) {
  const BinaryPlanesKernel& planes = *kernel.planes;
  ConvShape shapes[2] = {s, s};
  if (s.pad_value != 0) shapes[1].pad_value = random() % 2 != 0 ? 1 : -1;
  Data high;
  high.input = bits(random, (size_t)s.in_h * s.in_w, s.in_c);
  high.weights = low.weights;
  plain_loop(shapes[1], &high);
  const uint32_t* const inputs[2] = {low.input.data(), high.input.data()};
  AlignedBytes packed[2] = {AlignedBytes(kernel.packed_bytes(shapes[0])),
                            AlignedBytes(kernel.packed_bytes(shapes[1]))};
  AlignedBytes scratch(2 * kernel.scratch_bytes(s));
  const void* both[2];
  for (int i = 0; i < 2; ++i) {
    kernel.pack_weights(shapes[i], low.weights.data(), nullptr, packed[i].data);
    both[i] = packed[i].data;
  }
  const int rows = kernel.prepare_rows(s), pixels = s.out_h * s.out_w;
  const int cut = (int)(random() % (rows + 1)), pixel_cut = (int)(random() % (pixels + 1));
  const auto prepare = [&](int begin, int end) {
    if (begin == end) return;
    if (planes.prepare_input != nullptr)
      return planes.prepare_input(shapes, inputs, scratch.data, begin, end);
    for (int i = 0; i < 2; ++i)
      kernel.prepare_input(shapes[i], inputs[i], scratch.data + i * kernel.scratch_bytes(s), begin, end);
  };
  prepare(cut, rows);
  prepare(0, cut);
  INFO("planes, the second padded with ", shapes[1].pad_value);
  Outputs out(random, pixels, s.out_c);
  Epilogue epilogue{};
  epilogue.value = out.value.data();
  epilogue.channels = s.out_c, epilogue.pixel_channels = out.pixel_channels;
  const int blocks = (s.out_c + kChannelBlock - 1) / kChannelBlock;
  planes.run(s, both, inputs, scratch.data, {pixel_cut, pixels, 0, blocks}, epilogue);
  planes.run(s, both, inputs, scratch.data, {0, pixel_cut, 0, blocks}, epilogue);
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int i = 0; i < pixels * s.out_c; ++i) {
    const int expected = low.accumulators[i] + 2 * high.accumulators[i], p = i / s.out_c, c = i % s.out_c;
    const float got = out.value.data()[(size_t)p * out.pixel_channels + c];
    if (got != (float)expected) FAIL("pixel ", p, " channel ", c, ": got ", got, ", expected ", expected);
  }
}

/// What the planner is told for this processor, by rows that need none, is built here.
void check_choice(const Isa& isa, const ConvShape& s) {
  for (const int threads : {1, 2, 8, 64}) {
    const BinaryConvRow& row = choose_binary_conv(isa.binary_conv, s, this_processor(threads));
    REQUIRE(row.code != nullptr);
    CHECK(can_compute(row, s, this_processor(threads)));
  }
}

void check_case(std::mt19937& random, const Case& c, const uint32_t* weights = nullptr) {
  ConvShape s;
  if (!shape_of(c, &s)) return;
  INFO(describe(s), ", PHONEBIT_TEST_SEED=", test_seed());
  Data data;
  data.input = bits(random, (size_t)s.in_h * s.in_w, s.in_c);
  data.weights = bits(random, (size_t)s.out_c * s.kernel_h * s.kernel_w, s.in_c);
  if (weights != nullptr) std::fill(data.weights.begin(), data.weights.end(), *weights);
  if (c.alike) {
    const size_t filter_words = data.weights.size() / s.out_c;
    for (size_t i = filter_words; i < data.weights.size(); ++i)
      data.weights[i] = data.weights[i % filter_words] ^ (data.weights[i] % 32 == 0 ? 1 : 0);
  }
  plain_loop(s, &data);
  for (const Isa* const isa : supported_isas()) {
    INFO(isa->name);
    check_choice(*isa, s);
  }
  LateFailure failure;  // after all kernels were tried
  for (const Isa* const isa : isas_with_own(&Isa::binary_conv)) {
    INFO(isa->name);
    const BinaryConvRow* row = isa->binary_conv;
    for (const BinaryConvKernel* tried = nullptr; row->name != nullptr; tried = row++->code) {
      if (!can_compute(*row, s, this_processor(1)) || row->code == tried) continue;
      INFO(row->code->name);
      failure.keep([&] { check_thresholds(random, *row->code, s, data); });
      failure.keep([&] { check_epilogue(random, *row->code, s, data); });
      if (row->code->planes != nullptr && row->code->planes->supports(s))
        failure.keep([&] { check_planes(random, *row->code, s, data); });
    }
    CHECK_MESSAGE((row[-1].supports == any_shape), "the last row supports every shape");
  }
  failure.rethrow();
}

/// Cases that a kernel supports.
template <size_t kCount>
void check_cases(std::mt19937& random, const Case (&cases)[kCount], bool (*supports)(const ConvShape&)) {
  for (const Case& c : cases) {
    ConvShape s;
    REQUIRE(shape_of(c, &s));
    CHECK(supports(s));
    check_case(random, c);
  }
}

Window random_window(std::mt19937& random, int size) {
  Window w = {size, pick_one(random, {1, 1, 1, 2, 3}), size > 1 ? pick_one(random, {1, 1, 1, 2, 3}) : 1, 0,
              0};
  const int reach = (size - 1) * w.dilation + 1;  // padding is smaller than the dilated kernel
  w.pad_before = (int)(random() % reach);
  w.pad_after = (int)(random() % reach);
  return w;
}

void check_random(std::mt19937& random) {
  const int kernels[][2] = {{1, 1}, {2, 2}, {3, 3}, {1, 5}, {5, 5}, {7, 7}, {3, 1}};
  const int* kernel = kernels[random() % (sizeof(kernels) / sizeof(kernels[0]))];
  Case c;
  c.in_h = pick_one(random, {1, 2, 3, 4, 5, 7, 9});
  c.in_w = pick_one(random, {1, 2, 3, 4, 5, 7, 8, 11});
  c.in_c = pick_one(random, {1, 3, 8, 10, 11, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 256});
  c.out_c = random() % 4 == 0 ? pick_one(random, {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128})
                              : 1 + (int)(random() % 130);
  c.rows = random_window(random, kernel[0]);
  c.columns = random_window(random, kernel[1]);
  c.pad_value = (int)(random() % 3) - 1;
  check_case(random, c);
}

/// Stride 1, "same" padding, maps around the kernels' tiles.
TEST_CASE("layers as networks have them") {
  std::mt19937 random(test_seed());
  const Window same = {3, 1, 1, 1, 1}, half = {3, 2, 1, 1, 1}, tf_half = {3, 2, 1, 0, 1},
               one = {1, 1, 1, 0, 0};
  for (int size : {1, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 18}) {
    const int pad_value = (int)(random() % 3) - 1;
    const int in_c = pick_one(random, {32, 64, 96, 128, 192});
    const int out_c = pick_one(random, {32, 64, 100, 128});
    for (const Window& w : {same, half, tf_half, one})
      check_case(random, {size, size + 1, in_c, out_c, w, w, pad_value});
  }
  // Few channels: pixels narrower than a word, rows around a vector of them.
  for (int in_c : {1, 5, 8, 15, 16, 17}) {
    const int pad_value = (int)(random() % 3) - 1;
    const int width = pick_one(random, {14, 15, 16, 17, 30, 33});
    for (const Window& w : {same, half, tf_half, one})
      check_case(random, {5, width, in_c, pick_one(random, {16, 32, 48}), w, w, pad_value});
  }
  const Window whole = {4, 1, 1, 0, 0};
  for (int in_c : {1, 32, 33, 64, 100, 512}) {
    check_case(random, {4, 4, in_c, 130, whole, whole, 0});
    check_case(random, {1, 1, in_c, 65, one, one, 0});
    check_case(random, {1, 1, in_c * 8 + 1, 320, one, one, 0});
  }
}

/// Windows around what decides about groups of filters, and weights of which all or nearly all are in one pattern.
TEST_CASE("filters that share sums on NEON") {
  std::mt19937 random(test_seed());
  const Window same = {3, 1, 1, 1, 1}, dilated = {3, 1, 2, 2, 2}, one = {1, 1, 1, 0, 0};
  for (int in_c : {32, 96, 160, 256, 480, 1024}) {
    const Case c = {12, 11, in_c, 64, same, in_c == 96 ? dilated : same, (int)(random() % 3) - 1};
    check_case(random, c);
    for (const uint32_t weights : {0u, 0xffffffffu, 1u}) check_case(random, c, &weights);
  }
  for (const uint32_t weights : {0u, 0xffffffffu, 2u})
    check_case(random, {7, 7, 992, 64, one, one, 0}, &weights);
  check_case(random, {8, 8, 1024, 64, same, same, 0});
  for (int in_c : {64, 352}) check_case(random, {12, 11, in_c, 64, same, same, 0, true});
  check_case(random, {12, 11, 64, 96, same, same, 0});
  check_case(random, {7, 7, 1056, 128, one, one, 0});
}

/// Maps of one tile and of several, narrow and wide; windows of each number of filters that share sums, and of digits;
/// few border classes, and as many as there is room for.
TEST_CASE("filters that share sums on AVX-512") {
  std::mt19937 random(test_seed());
  const Window same = {3, 1, 1, 1, 1}, before = {3, 1, 1, 2, 0}, inside = {3, 1, 1, 0, 0},
               five = {5, 1, 1, 2, 2}, seven = {7, 1, 1, 6, 6}, nine = {9, 1, 1, 8, 8};
  const Case cases[] = {
      {14, 16, 64, 64, same, same, 0},           {14, 17, 64, 128, before, inside, 1},
      {20, 31, 64, 64, same, same, -1},          {14, 56, 64, 64, inside, before, 0},
      {13, 14, 128, 64, same, same, 0, true},    {16, 15, 64, 64, five, five, 0},
      {15, 16, 96, 64, five, same, 1},           {15, 14, 256, 64, same, same, 0},
      {13, 13, 256, 64, before, same, 1, true},  {18, 24, 256, 64, same, same, 0, false},
      {17, 24, 128, 64, same, before, -1, true}, {30, 31, 64, 64, five, same, 0},
      {6, 6, 32, 64, seven, seven, 0},
  };
  check_cases(random, cases, shares_sums_avx512);
  ConvShape s;
  REQUIRE(shape_of({8, 16, 32, 64, nine, nine, 0}, &s));
  CHECK(!shares_sums_avx512(s));
}

/// Groups of 4 to 7 windows, one per row and several; rows of padding that make long classes.
TEST_CASE("windows that share sums on AVX-512") {
  std::mt19937 random(test_seed());
  const Window same = {3, 1, 1, 1, 1}, half = {3, 2, 1, 1, 1}, tf_half = {3, 2, 1, 0, 1},
               dilated = {3, 1, 2, 2, 2}, five = {5, 1, 1, 2, 2}, one = {1, 1, 1, 0, 0};
  const Case cases[] = {
      {3, 7, 288, 512, same, same, 0},        {1, 6, 1024, 512, same, same, 0},
      {4, 9, 480, 512, half, tf_half, 1},     {2, 5, 288, 1024, same, same, 1},
      {3, 13, 288, 512, half, same, 0},       {1, 13, 288, 512, dilated, dilated, -1},
      {2, 8, 2528, 512, one, one, 0},         {1, 11, 128, 512, five, five, 0},
      {2, 4, 416, 512, same, same, -1, true},
  };
  check_cases(random, cases, shares_windows_avx512);
}

TEST_CASE("random geometries") {
  std::mt19937 random(test_seed());
  for (unsigned i = 0; i < test_cases(250); ++i) check_random(random);
}

/// Plans for a phone are made on another machine: rows are there whether or not their code is.
TEST_CASE("the table answers for every instruction set") {
  ConvShape shape;
  REQUIRE(shape_of({14, 14, 256, 64, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}, 0}, &shape));
  const char* const expected[][2] = {{"avx512", "shared_sums"},       {"avx2", "pair_table"},
                                     {"sme2", "outer_products"},      {"neon_i8mm", "shared_sums"},
                                     {"neon_dotprod", "shared_sums"}, {"neon", "shared_sums"},
                                     {"wasm_simd", "count"},          {"scalar", "popcount"}};
  const IsaRow* isa = kIsas;
  for (const auto& [name, kernel] : expected) {
    REQUIRE(isa->name == std::string(name));
    CHECK(choose_binary_conv(isa->binary_conv, shape, {1, true}).name == std::string(kernel));
    ++isa;
  }
  CHECK(isa->name == nullptr);
  for (const Isa* const* built = kBuiltIsas; *built != nullptr; ++built) {
    isa = std::find_if(kIsas, kIsas + std::size(expected),
                       [&](const IsaRow& row) { return row.name == std::string((*built)->name); });
    CHECK(isa->binary_conv == (*built)->binary_conv);
  }
  CHECK(choose_binary_conv(kBinaryConv_neon, shape, {1, false}).name == std::string("count"));
  CHECK(choose_binary_conv(kBinaryConv_avx512, shape, {8, true}).name == std::string("carry_save"));
}

/// PHONEBIT_TEST_ISAS has those that are expected on this processor.
TEST_CASE("the supported instruction sets") {
  std::string supported;
  for (const Isa* const isa : supported_isas())
    supported += (supported.empty() ? "" : " ") + std::string(isa->name);
  const char* const expected = std::getenv("PHONEBIT_TEST_ISAS");
  if (expected != nullptr)
    CHECK(supported == expected);
  else
    CHECK(supported.substr(supported.rfind(' ') + 1) == "scalar");
}

}  // namespace
}  // namespace check
