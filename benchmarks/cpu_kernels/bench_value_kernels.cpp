// Times the float, first-layer and window kernels of every supported instruction set, one thread.
//
// Usage: phonebit_value_bench [isa|all [samples [filter]]]. Shapes are those of QuickNet and ResNet-18 at
// 224x224. The FMA peak is measured in the same run with independent chains in registers, so shares of it
// survive a noisy machine.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernel_types.h"
#include "machine.h"

namespace {

using namespace phonebit::engine::cpu;

struct Buffer {
  void* p;
  explicit Buffer(size_t bytes) : p(std::aligned_alloc(64, (bytes + 127) / 64 * 64)) {
    std::memset(p, 0, (bytes + 127) / 64 * 64);
  }
  ~Buffer() { std::free(p); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

/// Vectors of 64-byte aligned elements, as the runtime's arenas hold them.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  T* allocate(size_t n) { return (T*)std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64); }
  void deallocate(T* p, size_t) { std::free(p); }
  bool operator==(const AlignedAllocator&) const { return true; }
  bool operator!=(const AlignedAllocator&) const { return false; }
};
template <class T>
using Vector = std::vector<T, AlignedAllocator<T>>;

struct Timing {
  double median_s, low_s, high_s;  // low and high: quartiles
};

/// CPU time of this thread: others that share the core cost cache contents, but not their own time.
double cpu_now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Timing time_calls(const std::function<void()>& call, int samples) {
  call();
  double start = cpu_now();
  call();
  const int calls = std::max(1, (int)(2e-3 / std::max(1e-7, cpu_now() - start)));
  std::vector<double> times;
  for (int i = 0; i < samples; i++) {
    start = cpu_now();
    for (int j = 0; j < calls; j++) call();
    times.push_back((cpu_now() - start) / calls);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() / 4], times[times.size() * 3 / 4]};
}

struct Layer {
  const char* name;
  int size, in_c, out_c, kernel, stride, pad;
};

ConvShape shape_of(const Layer& l) {
  ConvShape s = {};
  s.in_h = s.in_w = l.size, s.in_c = l.in_c, s.out_c = l.out_c;
  s.kernel_h = s.kernel_w = l.kernel, s.stride_h = s.stride_w = l.stride, s.dilation_h = s.dilation_w = 1;
  s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = l.pad;
  s.out_h = s.out_w = (l.size + 2 * l.pad - l.kernel) / l.stride + 1;
  s.input_mul = 1;
  return s;
}

constexpr Layer kFloatLayers[] = {
    {"ResNet-18 stem 7x7s2", 224, 3, 64, 7, 2, 3},
    {"QuickNet stem 3x3s2", 224, 3, 16, 3, 2, 1},
    {"QuickNet stem 1x1", 56, 16, 64, 1, 1, 0},
    {"transition 1x1", 28, 64, 128, 1, 1, 0},
    {"transition 1x1", 14, 128, 256, 1, 1, 0},
    {"transition 1x1", 7, 256, 512, 1, 1, 0},
    {"ResNet-18 3x3", 56, 64, 64, 3, 1, 1},
    {"ResNet-18 3x3", 28, 128, 128, 3, 1, 1},
    {"ResNet-18 3x3", 14, 256, 256, 3, 1, 1},
    {"ResNet-18 3x3", 7, 512, 512, 3, 1, 1},
    {"dense", 1, 512, 1000, 1, 1, 0},
    {"dense", 1, 4096, 1000, 1, 1, 0},
    {"dense", 1, 4096, 4096, 1, 1, 0},
};
constexpr Layer kByteLayers[] = {{"u8 3x3", 224, 3, 64, 3, 1, 1},      {"u8 7x7s2", 224, 3, 64, 7, 2, 3},
                                 {"u8 11x11s4", 227, 3, 96, 11, 4, 0}, {"u8 3x3", 416, 3, 16, 3, 1, 1},
                                 {"u8 3x3s2", 224, 3, 32, 3, 2, 1},    {"u8 7x7s2", 224, 3, 16, 7, 2, 3}};
constexpr Layer kWindowLayers[] = {
    {"blur 3x3s2", 56, 64, 64, 3, 2, 1},  {"blur 3x3s2", 28, 128, 128, 3, 2, 1},
    {"stem 3x3s2", 112, 16, 16, 3, 2, 1}, {"pool 3x3s2", 112, 64, 64, 3, 2, 1},
    {"pool 2x2s2", 56, 64, 64, 2, 2, 0},  {"pool 2x2s2", 416, 16, 16, 2, 2, 0},
    {"pool 2x2s2", 224, 64, 64, 2, 2, 0}, {"pool 3x3s2", 55, 96, 96, 3, 2, 0}};

int g_samples = 15;
const char* g_filter = "";
double g_peak_flops = 0;

/// Work done by one call. Operations of floats are shown as a share of the FMA peak too.
struct Work {
  double float_operations, integer_operations, bytes;
};

void report(const Isa& isa, const std::string& what, const Work& work, const std::function<void()>& call) {
  const std::string name = std::string(isa.name) + " " + what;
  if (name.find(g_filter) == std::string::npos) return;
  const Timing t = time_calls(call, g_samples);
  std::printf("%-58s %9.1f us (%.1f-%.1f)", name.c_str(), t.median_s * 1e6, t.low_s * 1e6, t.high_s * 1e6);
  if (work.float_operations > 0) {
    const double rate = work.float_operations / t.median_s;
    std::printf(" %8.1f GFLOP/s %5.1f %%", rate * 1e-9, 100 * rate / g_peak_flops);
  }
  if (work.integer_operations > 0) std::printf(" %8.1f Gop/s", work.integer_operations / t.median_s * 1e-9);
  if (work.bytes > 0) std::printf(" %7.1f GB/s", work.bytes / t.median_s * 1e-9);
  std::printf("\n");
  std::fflush(stdout);
}

std::string describe(const char* kind, const Layer& l) {
  char text[120];
  std::snprintf(text, sizeof text, "%s %s %dx%d %d->%d", kind, l.name, l.size, l.size, l.in_c, l.out_c);
  return text;
}

Vector<float> random_floats(size_t count) {
  std::mt19937 random(1);
  Vector<float> v(count);
  for (float& x : v) x = (float)(random() % 2001) / 1000.0f - 1.0f;
  return v;
}

template <class Weight>
void bench_real(const Isa& isa, const RealConvKernel<Weight>& kernel, const Layer& layer) {
  const ConvShape s = shape_of(layer);
  const Vector<float> input = random_floats((size_t)s.in_h * s.in_w * s.in_c);
  Vector<Weight> weights((size_t)s.out_c * s.kernel_h * s.kernel_w * s.in_c);
  std::mt19937 random(1);
  for (Weight& w : weights) w = (Weight)(random() % 0x3c00);  // as the bits of a half: below 1
  const Vector<float> scale = random_floats(s.out_c);
  const int pixels = s.out_h * s.out_w;
  Buffer packed(kernel.packed_bytes(s)), scratch(kernel.scratch_bytes(s)), out((size_t)pixels * s.out_c * 4);
  kernel.pack_weights(s, weights.data(), packed.p);
  EpilogueStep step = {};
  step.kind = StepKind::kScaleBias;
  step.a = step.b = scale.data();
  const Epilogue epilogue = {&step, 1, (float*)out.p, nullptr, nullptr, s.out_c, s.out_c, 0};
  const double macs = (double)pixels * s.out_c * s.kernel_h * s.kernel_w * s.in_c;
  const bool dense = pixels == 1;
  const double bytes = dense ? sizeof(Weight) * macs : 0;
  report(isa, describe(kernel.name, layer), {2 * macs, 0, bytes}, [&] {
    if (kernel.prepare_rows(s)) kernel.prepare_input(s, input.data(), scratch.p, 0, kernel.prepare_rows(s));
    kernel.run(s, packed.p, input.data(), scratch.p, {0, pixels, 0, (s.out_c + 63) / 64}, epilogue);
  });
}

void bench_u8(const Isa& isa, const Layer& layer) {
  const ConvShape s = shape_of(layer);
  std::mt19937 random(1);
  Vector<uint8_t> input((size_t)s.in_h * s.in_w * s.in_c);
  for (uint8_t& x : input) x = (uint8_t)random();
  Vector<uint32_t> weights((size_t)s.out_c * s.kernel_h * s.kernel_w);
  for (uint32_t& w : weights) w = (uint32_t)random() & ((1u << s.in_c) - 1);
  const Vector<int32_t> thresholds(s.out_c, 100);
  const int pixels = s.out_h * s.out_w;
  const double macs = (double)pixels * s.out_c * s.kernel_h * s.kernel_w * s.in_c;
  for (const U8ConvKernel* const* entry = isa.u8_conv; *entry; entry++) {
    const U8ConvKernel& kernel = **entry;
    if (!kernel.supports(s)) continue;
    Buffer packed(kernel.packed_bytes(s)), scratch(kernel.scratch_bytes(s)),
        out((size_t)pixels * words(s.out_c) * 4);
    kernel.pack_weights(s, weights.data(), thresholds.data(), packed.p);
    const std::string what = describe("", layer) + " " + kernel.name;
    report(isa, what + " prepare", {},
           [&] { kernel.prepare_input(s, input.data(), scratch.p, 0, kernel.prepare_rows(s)); });
    report(isa, what, {0, 2 * macs, 0}, [&] {
      kernel.prepare_input(s, input.data(), scratch.p, 0, kernel.prepare_rows(s));
      kernel.run(s, packed.p, input.data(), scratch.p, {0, pixels, 0, (s.out_c + 63) / 64},
                 {(uint32_t*)out.p, words(s.out_c), nullptr});
    });
  }
}

void bench_window(const Isa& isa, const Layer& layer) {
  const ConvShape s = shape_of(layer);
  const Vector<float> input = random_floats((size_t)s.in_h * s.in_w * s.in_c);
  const Vector<float> weights = random_floats((size_t)s.kernel_h * s.kernel_w * s.in_c);
  const Vector<uint32_t> bits((size_t)s.in_h * s.in_w * words(s.in_c), 0x5a5a1234);
  const Vector<int32_t> thresholds(s.in_c, 1);
  const int pixels = s.out_h * s.out_w;
  Buffer out((size_t)pixels * s.out_c * 4), out_bits((size_t)pixels * words(s.out_c) * 4);
  const Epilogue epilogue = {nullptr, 0, (float*)out.p, nullptr, nullptr, s.out_c, s.out_c, 0};
  const double flops = 2.0 * pixels * s.out_c * s.kernel_h * s.kernel_w;
  const ValueKernels& k = *isa.values;
  report(isa, describe("depthwise", layer), {flops, 0, 0},
         [&] { k.depthwise_f32(s, weights.data(), input.data(), 0, s.out_h, epilogue); });
  report(isa, describe("max f32", layer), {0, 0, 4.0 * input.size()},
         [&] { k.max_pool_f32(s, input.data(), 0, s.out_h, epilogue); });
  report(isa, describe("average f32", layer), {0, 0, 4.0 * input.size()},
         [&] { k.average_pool_f32(s, input.data(), 0, s.out_h, epilogue); });
  report(isa, describe("max bits", layer), {0, 0, 4.0 * bits.size()},
         [&] { k.max_pool_bits(s, nullptr, bits.data(), 0, s.out_h, (uint32_t*)out_bits.p); });
  report(isa, describe("binary depthwise", layer), {}, [&] {
    isa.binary_depthwise(s, bits.data(), thresholds.data(), bits.data(), 0, s.out_h,
                         {(uint32_t*)out_bits.p, words(s.out_c), nullptr});
  });
}

/// The epilogue of residual blocks over a map that is already in memory; bytes are all reads and writes.
void bench_epilogue(const Isa& isa, int size, int channels) {
  const int pixels = size * size;
  const Vector<float> input = random_floats((size_t)pixels * channels),
                      shortcut = random_floats(input.size());
  const Vector<float> scale = random_floats(channels);
  Buffer value(input.size() * 4), bits((size_t)pixels * words(channels) * 4);
  EpilogueStep steps[3] = {};
  steps[0].kind = StepKind::kClamp;
  steps[0].high = 1e30f;
  steps[1].kind = StepKind::kScaleBias;
  steps[1].a = steps[1].b = scale.data();
  steps[2].kind = StepKind::kAdd;
  steps[2].tensor = shortcut.data();
  steps[2].tensor_pixel_stride = channels;
  const Epilogue epilogue = {steps,   3,        (float*)value.p, (uint32_t*)bits.p,
                             nullptr, channels, channels,        words(channels)};
  const Epilogue only_bits = {nullptr, 0,        nullptr,  (uint32_t*)bits.p,
                              nullptr, channels, channels, words(channels)};
  char text[100];
  std::snprintf(text, sizeof text, " %dx%dx%d", size, size, channels);
  report(isa, std::string("clamp scale bias add value bits") + text, {0, 0, 12.0 * input.size()},
         [&] { isa.values->elementwise_f32(input.data(), 0, pixels, epilogue); });
  report(isa, std::string("sign bits of f32") + text, {0, 0, 4.0 * input.size()},
         [&] { isa.values->elementwise_f32(input.data(), 0, pixels, only_bits); });
}

#if defined(__x86_64__)
#define FMA_10(R)                                                                       \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "0\n vfmadd231ps %%" R "14, %%" R "15, %%" R \
  "1\n"                                                                                 \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "2\n vfmadd231ps %%" R "14, %%" R "15, %%" R \
  "3\n"                                                                                 \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "4\n vfmadd231ps %%" R "14, %%" R "15, %%" R \
  "5\n"                                                                                 \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "6\n vfmadd231ps %%" R "14, %%" R "15, %%" R \
  "7\n"                                                                                 \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "8\n vfmadd231ps %%" R "14, %%" R "15, %%" R "9\n"
__attribute__((target("avx512f"))) void fma_loop_512(long n) {
  asm volatile("vpxord %%zmm14, %%zmm14, %%zmm14\n vpxord %%zmm15, %%zmm15, %%zmm15\n 1:\n" FMA_10(
                   "zmm") "decq %0\n jnz 1b\n vzeroupper"
               : "+r"(n)
               :
               : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm14",
                 "zmm15", "cc");
}
__attribute__((target("avx2,fma"))) void fma_loop_256(long n) {
  asm volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n vpxor %%ymm15, %%ymm15, %%ymm15\n 1:\n" FMA_10(
                   "ymm") "decq %0\n jnz 1b\n vzeroupper"
               : "+r"(n)
               :
               : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm14",
                 "ymm15", "cc");
}
#endif

/// Float operations a second of independent FMA chains in registers: the most that this instruction set can
/// do here.
double peak_flops(const Isa& isa) {
#if defined(__x86_64__)
  constexpr long kLoops = 20000;
  constexpr int kChains = 10;
  const bool wide = std::strcmp(isa.name, "avx512") == 0;
  if (!wide && std::strcmp(isa.name, "avx2") != 0) return NAN;
  const Timing t = time_calls([&] { wide ? fma_loop_512(kLoops) : fma_loop_256(kLoops); }, 15);
  return kLoops * kChains * (wide ? 32.0 : 16.0) / t.median_s;
#else
  (void)isa;
  return NAN;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "all";
  if (argc > 2) g_samples = std::atoi(argv[2]);
  if (argc > 3) g_filter = argv[3];
  std::printf("%s, %.2f GHz, reads 64 MB at %.1f GB/s\n", bench::processor_name().c_str(),
              bench::measure_clock().ghz, bench::measure_read_bandwidth(64 << 20) * 1e-9);
  for (const Isa* const* isa = all_isas(); *isa; isa++) {
    if (!(*isa)->supported() || (std::strcmp(wanted, "all") != 0 && std::strcmp(wanted, (*isa)->name) != 0))
      continue;
    g_peak_flops = peak_flops(**isa);
    std::printf("%s: FMA peak %.1f GFLOP/s\n", (*isa)->name, g_peak_flops * 1e-9);
    for (const Layer& layer : kByteLayers) bench_u8(**isa, layer);
    for (const Layer& layer : kFloatLayers) {
      bench_real(**isa, *(*isa)->f32_conv, layer);
      bench_real(**isa, *(*isa)->f16_conv, layer);
    }
    for (const Layer& layer : kWindowLayers) bench_window(**isa, layer);
    bench_epilogue(**isa, 56, 64);
    bench_epilogue(**isa, 14, 256);
  }
  return 0;
}
