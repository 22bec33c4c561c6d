// Every binary convolution kernel of every supported instruction set equals a plain loop over +1, -1 and
// padding.
//
// Usage: test_binary_conv [seed [repeats]]. Maps, weights, thresholds and the way that work is split are
// random; geometries straddle each boundary of the kernels. Outputs lie between guard words.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernel_types.h"
#include "select.h"

namespace {

using namespace phonebit::engine::cpu;

int g_failures = 0;
constexpr int kMostFailures = 20;

void fail(const std::string& what) {
  if (++g_failures <= kMostFailures) std::fprintf(stderr, "FAIL %s\n", what.c_str());
}

struct Window {
  int size, stride, dilation, pad_before, pad_after;
};

struct Case {
  int in_h, in_w, in_c, out_c;
  Window rows, columns;
  int pad_value;
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

std::string describe(const ConvShape& s) {
  char text[300];
  std::snprintf(text, sizeof(text),
                "in %dx%dx%d out %dx%dx%d kernel %dx%d stride %d,%d dilation %d,%d pad %d,%d,%d,%d of %d",
                s.in_h, s.in_w, s.in_c, s.out_h, s.out_w, s.out_c, s.kernel_h, s.kernel_w, s.stride_h,
                s.stride_w, s.dilation_h, s.dilation_w, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right,
                s.pad_value);
  return text;
}

struct Data {
  std::vector<uint32_t> input, weights;
  std::vector<int32_t> accumulators;  // [pixel][channel], by the plain loop
};

std::vector<uint32_t> random_bits(std::mt19937& random, size_t rows, int channels) {
  std::vector<uint32_t> bits(rows * words(channels));
  const int tail = channels % 32;
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = random();
    const bool last = (i + 1) % words(channels) == 0;
    if (last && tail != 0) bits[i] &= (1u << tail) - 1;
  }
  return bits;
}

int sign(const uint32_t* bits, int channel) {
  return (bits[channel / 32] >> (channel % 32) & 1) != 0 ? 1 : -1;
}

/// acc = sum over taps and channels of w * x; a tap outside the map has x = pad_value. The mathematics,
/// nothing else.
void plain_loop(const ConvShape& s, Data* data) {
  const int words_in = words(s.in_c);
  data->accumulators.assign((size_t)s.out_h * s.out_w * s.out_c, 0);
  std::vector<int8_t> x(s.in_c), w(s.in_c);
  size_t index = 0;
  for (int y = 0; y < s.out_h; ++y) {
    for (int x0 = 0; x0 < s.out_w; ++x0) {
      for (int c = 0; c < s.out_c; ++c) {
        int acc = 0;
        for (int ky = 0; ky < s.kernel_h; ++ky) {
          for (int kx = 0; kx < s.kernel_w; ++kx) {
            const int in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
            const int in_x = x0 * s.stride_w - s.pad_left + kx * s.dilation_w;
            const bool inside = in_y >= 0 && in_y < s.in_h && in_x >= 0 && in_x < s.in_w;
            const uint32_t* tap =
                &data->weights[(((size_t)c * s.kernel_h + ky) * s.kernel_w + kx) * words_in];
            const uint32_t* pixel =
                inside ? &data->input[((size_t)in_y * s.in_w + in_x) * words_in] : nullptr;
            for (int i = 0; i < s.in_c; ++i) acc += sign(tap, i) * (inside ? sign(pixel, i) : s.pad_value);
          }
        }
        data->accumulators[index++] = acc;
      }
    }
  }
}

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};

using Aligned = std::unique_ptr<char, FreeAligned>;

Aligned aligned(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes + 64) != 0) std::abort();
  std::memset(p, 0xa5, bytes + 64);
  return Aligned((char*)p);
}

constexpr uint32_t kGuard = 0xdeadbeef;
constexpr size_t kGuardWords = 32;

/// What lies between the pixels of an output that is part of a larger layer's.
int random_gap(std::mt19937& random) { return random() % 2 != 0 ? (int)(random() % 5) : 0; }

/// `count` words between guards, filled with a pattern that no kernel writes by chance.
struct Guarded {
  explicit Guarded(size_t count) : words_(count + 2 * kGuardWords, kGuard) {}
  uint32_t* begin() { return words_.data() + kGuardWords; }
  /// Whether nothing was written but `used` words at the begin of each `step`.
  bool intact(int used, int step) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const bool is_output = i >= kGuardWords && i < words_.size() - kGuardWords;
      if (is_output && (int)((i - kGuardWords) % step) < used) continue;
      if (words_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  std::vector<uint32_t> words_;
};

/// Runs `kernel` as an executor with several threads would: rows and ranges in pieces, in random order.
void run_split(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s, const Data& data,
               const void* packed, void* scratch, const AccumulatorSink& sink) {
  const int rows = kernel.prepare_rows(s);
  const int cut = rows > 0 ? (int)(random() % (rows + 1)) : 0;
  if (cut < rows) kernel.prepare_input(s, data.input.data(), scratch, cut, rows);
  if (cut > 0) kernel.prepare_input(s, data.input.data(), scratch, 0, cut);

  const int pixels = s.out_h * s.out_w;
  const int blocks = (s.out_c + kChannelBlock - 1) / kChannelBlock;
  const int pixel_cut = random() % 2 != 0 ? (int)(random() % (pixels + 1)) : pixels;
  const int block_cut = random() % 2 != 0 ? (int)(random() % (blocks + 1)) : blocks;
  const int pixel_edges[3] = {0, pixel_cut, pixels};
  const int block_edges[3] = {0, block_cut, blocks};
  for (int i = 1; i >= 0; --i) {
    for (int j = 0; j < 2; ++j) {
      const OutputRange range = {pixel_edges[i], pixel_edges[i + 1], block_edges[j], block_edges[j + 1]};
      kernel.run(s, packed, data.input.data(), scratch, range, sink);
    }
  }
}

void check_thresholds(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s,
                      const Data& data, const std::string& name) {
  const int64_t pixels = (int64_t)s.out_h * s.out_w;
  const int pixel_words = words(s.out_c) + random_gap(random);
  std::vector<int32_t> thresholds(s.out_c);
  for (int c = 0; c < s.out_c; ++c) {
    // Mostly a value that occurs, so that >= and > differ; sometimes the extremes, which mean always and
    // never.
    const uint32_t pick = random() % 16;
    thresholds[c] = data.accumulators[(size_t)(random() % pixels) * s.out_c + c] + (int)(random() % 3) - 1;
    if (pick == 0) thresholds[c] = INT32_MIN;
    if (pick == 1) thresholds[c] = INT32_MAX;
  }
  const Aligned packed = aligned(kernel.packed_bytes(s));
  const Aligned scratch = aligned(kernel.scratch_bytes(s));
  kernel.pack_weights(s, data.weights.data(), thresholds.data(), packed.get());
  Guarded out(pixels * pixel_words);
  run_split(random, kernel, s, data, packed.get(), scratch.get(), {out.begin(), pixel_words, nullptr});
  if (!out.intact(words(s.out_c), pixel_words))
    fail(name + ": threshold form wrote outside its output, " + describe(s));
  for (int64_t p = 0; p < pixels; ++p) {
    for (int c = 0; c < words(s.out_c) * 32; ++c) {
      const bool expected = c < s.out_c && data.accumulators[p * s.out_c + c] >= thresholds[c];
      const bool got = (out.begin()[p * pixel_words + c / 32] >> (c % 32) & 1) != 0;
      if (got == expected) continue;
      fail(name + ": threshold form, pixel " + std::to_string(p) + " channel " + std::to_string(c) + " is " +
           std::to_string(got) + ", expected " + std::to_string(expected) + ", " + describe(s));
      return;
    }
  }
}

void check_epilogue(std::mt19937& random, const BinaryConvKernel& kernel, const ConvShape& s,
                    const Data& data, const std::string& name) {
  const int64_t pixels = (int64_t)s.out_h * s.out_w;
  const int pixel_channels = s.out_c + random_gap(random), pixel_words = words(s.out_c) + random_gap(random);
  const size_t elements = pixels * pixel_channels;
  std::vector<float> scale(s.out_c), bias(s.out_c), shortcut(elements), threshold(s.out_c);
  for (int c = 0; c < s.out_c; ++c) {
    scale[c] = (float)(int)(random() % 17 - 8) / 4;
    bias[c] = (float)(int)(random() % 65 - 32);
    threshold[c] = (float)(int)(random() % 9 - 4);
  }
  Guarded values(elements);
  float* value = (float*)values.begin();
  // The shortcut is added in place: a kernel that runs an epilogue twice for one pixel is found out here.
  for (int64_t p = 0; p < pixels; ++p) {
    for (int c = 0; c < s.out_c; ++c)
      shortcut[p * pixel_channels + c] = value[p * pixel_channels + c] = (float)(int)(random() % 65 - 32);
  }
  EpilogueStep steps[2] = {};
  steps[0].kind = StepKind::kScaleBias, steps[0].a = scale.data(), steps[0].b = bias.data();
  steps[1].kind = StepKind::kAdd, steps[1].tensor = value, steps[1].tensor_pixel_stride = pixel_channels;
  Guarded bits(pixels * pixel_words);
  const Epilogue epilogue = {steps,          2,          value, bits.begin(), threshold.data(), s.out_c,
                             pixel_channels, pixel_words};

  const Aligned packed = aligned(kernel.packed_bytes(s));
  const Aligned scratch = aligned(kernel.scratch_bytes(s));
  kernel.pack_weights(s, data.weights.data(), nullptr, packed.get());
  run_split(random, kernel, s, data, packed.get(), scratch.get(), {nullptr, 0, &epilogue});
  if (!values.intact(s.out_c, pixel_channels) || !bits.intact(words(s.out_c), pixel_words))
    fail(name + ": epilogue form wrote outside its outputs, " + describe(s));
  for (int64_t p = 0; p < pixels; ++p) {
    for (int c = 0; c < words(s.out_c) * 32; ++c) {
      const bool bit = (bits.begin()[p * pixel_words + c / 32] >> (c % 32) & 1) != 0;
      const size_t i = p * pixel_channels + c;
      // Quarters and small integers: every step is exact in float32, so equality is the right test.
      const float expected =
          c < s.out_c ? (float)data.accumulators[p * s.out_c + c] * scale[c] + bias[c] + shortcut[i] : 0;
      const bool expected_bit = c < s.out_c && expected >= threshold[c];
      if (bit == expected_bit && (c >= s.out_c || value[i] == expected)) continue;
      fail(name + ": epilogue form, pixel " + std::to_string(p) + " channel " + std::to_string(c) + ", " +
           (c < s.out_c ? "value " + std::to_string(value[i]) + " for " + std::to_string(expected) : "tail") +
           ", " + describe(s));
      return;
    }
  }
}

/// Whether a kernel whose name has the mark serves the shape.
bool serves(const Isa& isa, const char* mark, const ConvShape& s) {
  for (const BinaryConvKernel* const* kernel = isa.binary_conv; *kernel != nullptr; ++kernel) {
    if (std::strstr((*kernel)->name, mark) != nullptr && (*kernel)->supports(s)) return true;
  }
  return false;
}

/// What planning expects, told by rules that need no processor, is what the executor chooses here.
void check_rule(const Isa& isa, const ConvShape& s) {
  static const struct {
    const char *rule, *mark;
  } kMarks[] = {{"dense", "bgemv"},           {"dense", "neoncnt"},      {"tiles", "_tiles__"},
                {"carry_save", "carry_save"}, {"popcount", "bconv2d_b"}, {"pair_table", "avx2pairtable"},
                {"window", "neonpairtable"},  {"count", "neoncnt"}};
  ConvShape probe;
  shape_of({14, 14, 256, 64, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}, 0}, &probe);
  const CpuTraits traits{serves(isa, "_tiles__", probe), serves(isa, "neonpairtable", probe)};
  const BinaryConvRule* const rule = binary_conv_rule(isa.name, s, traits);
  if (rule == nullptr) return fail(std::string("no rule for ") + isa.name);
  const BinaryConvKernel* const* kernel = isa.binary_conv;
  while (kernel[1] != nullptr && !(*kernel)->supports(s)) ++kernel;
  for (const auto& [name, mark] : kMarks) {
    if (std::strcmp(name, rule->name) == 0 && std::strstr((*kernel)->name, mark) != nullptr) return;
  }
  fail(std::string("planning expects ") + rule->name + ", " + (*kernel)->name + " serves " + describe(s));
}

void check_case(std::mt19937& random, const Case& c) {
  ConvShape s;
  if (!shape_of(c, &s)) return;
  Data data;
  data.input = random_bits(random, (size_t)s.in_h * s.in_w, s.in_c);
  data.weights = random_bits(random, (size_t)s.out_c * s.kernel_h * s.kernel_w, s.in_c);
  plain_loop(s, &data);
  for (const Isa* const* isa = all_isas(); *isa != nullptr; ++isa) {
    if (!(*isa)->supported()) continue;
    check_rule(**isa, s);
    for (const BinaryConvKernel* const* kernel = (*isa)->binary_conv; *kernel != nullptr; ++kernel) {
      const bool last = kernel[1] == nullptr;
      const std::string name = std::string((*isa)->name) + "/" + (*kernel)->name;
      if (!(*kernel)->supports(s)) {
        if (last) fail(name + " is last in its list and must support every shape, " + describe(s));
        continue;
      }
      check_thresholds(random, **kernel, s, data, name);
      check_epilogue(random, **kernel, s, data, name);
    }
  }
}

int pick(std::mt19937& random, std::initializer_list<int> from) {
  return from.begin()[random() % from.size()];
}

Window random_window(std::mt19937& random, int size) {
  Window w = {size, pick(random, {1, 1, 1, 2, 3}), size > 1 ? pick(random, {1, 1, 1, 2, 3}) : 1, 0, 0};
  const int reach = (size - 1) * w.dilation + 1;  // padding is smaller than the dilated kernel
  w.pad_before = (int)(random() % reach);
  w.pad_after = (int)(random() % reach);
  return w;
}

void check_random(std::mt19937& random) {
  const int kernels[][2] = {{1, 1}, {2, 2}, {3, 3}, {1, 5}, {5, 5}, {7, 7}, {3, 1}};
  const int* kernel = kernels[random() % (sizeof(kernels) / sizeof(kernels[0]))];
  Case c;
  c.in_h = pick(random, {1, 2, 3, 4, 5, 7, 9});
  c.in_w = pick(random, {1, 2, 3, 4, 5, 7, 8, 11});
  c.in_c = pick(random, {1, 3, 8, 10, 11, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 256});
  c.out_c = random() % 4 == 0 ? pick(random, {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128})
                              : 1 + (int)(random() % 130);
  c.rows = random_window(random, kernel[0]);
  c.columns = random_window(random, kernel[1]);
  c.pad_value = (int)(random() % 3) - 1;
  check_case(random, c);
}

/// Layers as networks have them: stride 1, "same" padding, maps around the kernels' tiles.
void check_common(std::mt19937& random) {
  const Window same = {3, 1, 1, 1, 1}, half = {3, 2, 1, 1, 1}, tf_half = {3, 2, 1, 0, 1},
               one = {1, 1, 1, 0, 0};
  for (int size : {1, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 18}) {
    const int pad_value = (int)(random() % 3) - 1;
    const int in_c = pick(random, {32, 64, 96, 128, 192});
    const int out_c = pick(random, {32, 64, 100, 128});
    for (const Window& w : {same, half, tf_half, one})
      check_case(random, {size, size + 1, in_c, out_c, w, w, pad_value});
  }
  // Few channels: pixels narrower than a word, rows around a vector of them.
  for (int in_c : {1, 5, 8, 15, 16, 17}) {
    const int pad_value = (int)(random() % 3) - 1;
    const int width = pick(random, {14, 15, 16, 17, 30, 33});
    for (const Window& w : {same, half, tf_half, one})
      check_case(random, {5, width, in_c, pick(random, {16, 32, 48}), w, w, pad_value});
  }
  const Window whole = {4, 1, 1, 0, 0};
  for (int in_c : {1, 32, 33, 64, 100, 512}) {
    check_case(random, {4, 4, in_c, 130, whole, whole, 0});
    check_case(random, {1, 1, in_c, 65, one, one, 0});
    check_case(random, {1, 1, in_c * 8 + 1, 320, one, one, 0});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? (unsigned)std::strtoul(argv[1], nullptr, 0) : 20261120;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 250;
  std::printf("seed %u, %d random cases; instruction sets:", seed, repeats);
  for (const Isa* const* isa = all_isas(); *isa != nullptr; ++isa) {
    if ((*isa)->supported()) std::printf(" %s", (*isa)->name);
  }
  std::printf("\n");
  std::mt19937 random(seed);
  check_common(random);
  for (int i = 0; i < repeats; ++i) check_random(random);
  std::printf("%d failures\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
