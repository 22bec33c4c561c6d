// Times the float, first-layer and window kernels of every supported instruction set, one thread.
//
// Usage: phonebit_value_bench [isa|all [samples [filter]]]. Shapes are those of QuickNet and ResNet-18 at
// 224x224. The FMA peak is measured in the same run with independent chains in registers, so shares of it
// survive a noisy machine.
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
#include "layers.h"
#include "machine.h"

namespace {

using namespace phonebit::engine::cpu;

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

using bench::aligned;
using bench::Aligned;
using bench::conv;
using bench::Layer;

std::vector<Layer> float_layers() {
  return {conv(224, 3, 64, 7, 2, 3, "ResNet-18 stem"), conv(224, 3, 16, 3, 2, 1, "QuickNet stem"),
          conv(56, 16, 64, 1, 1, 0, "QuickNet stem"),  conv(28, 64, 128, 1, 1, 0, "transition"),
          conv(14, 128, 256, 1, 1, 0, "transition"),   conv(7, 256, 512, 1, 1, 0, "transition"),
          conv(56, 64, 64, 3, 1, 1, "ResNet-18"),      conv(28, 128, 128, 3, 1, 1, "ResNet-18"),
          conv(14, 256, 256, 3, 1, 1, "ResNet-18"),    conv(7, 512, 512, 3, 1, 1, "ResNet-18"),
          conv(1, 512, 1000, 1, 1, 0, "dense"),        conv(1, 4096, 1000, 1, 1, 0, "dense"),
          conv(1, 4096, 4096, 1, 1, 0, "dense")};
}

std::vector<Layer> byte_layers() {
  return {conv(224, 3, 64, 3, 1, 1, "u8"), conv(224, 3, 64, 7, 2, 3, "u8"), conv(227, 3, 96, 11, 4, 0, "u8"),
          conv(416, 3, 16, 3, 1, 1, "u8"), conv(224, 3, 32, 3, 2, 1, "u8"), conv(224, 3, 16, 7, 2, 3, "u8")};
}

std::vector<Layer> window_layers() {
  return {conv(56, 64, 64, 3, 2, 1, "blur"),  conv(28, 128, 128, 3, 2, 1, "blur"),
          conv(112, 16, 16, 3, 2, 1, "stem"), conv(112, 64, 64, 3, 2, 1, "pool"),
          conv(56, 64, 64, 2, 2, 0, "pool"),  conv(416, 16, 16, 2, 2, 0, "pool"),
          conv(224, 64, 64, 2, 2, 0, "pool"), conv(55, 96, 96, 3, 2, 0, "pool")};
}

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
  const bench::Timing t = bench::time_calls(call, g_samples);
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

Vector<float> random_floats(size_t count) {
  std::mt19937 random(1);
  Vector<float> v(count);
  for (float& x : v) x = (float)(random() % 2001) / 1000.0f - 1.0f;
  return v;
}

template <class Weight>
void bench_real(const Isa& isa, const RealConvKernel<Weight>& kernel, const Layer& layer) {
  const ConvShape& s = layer.shape;
  const Vector<float> input = random_floats((size_t)s.in_h * s.in_w * s.in_c);
  Vector<Weight> weights((size_t)s.out_c * s.kernel_h * s.kernel_w * s.in_c);
  std::mt19937 random(1);
  for (Weight& w : weights) w = (Weight)(random() % 0x3c00);  // as the bits of a half: below 1
  const Vector<float> scale = random_floats(s.out_c);
  const int pixels = s.out_h * s.out_w;
  const Aligned packed = aligned(kernel.packed_bytes(s)), scratch = aligned(kernel.scratch_bytes(s)),
                out = aligned((size_t)pixels * s.out_c * 4);
  kernel.pack_weights(s, weights.data(), packed.get());
  EpilogueStep step = {};
  step.kind = StepKind::kScaleBias;
  step.a = step.b = scale.data();
  const Epilogue epilogue = {&step, 1, (float*)out.get(), nullptr, nullptr, s.out_c, s.out_c, 0};
  const double macs = (double)pixels * s.out_c * s.kernel_h * s.kernel_w * s.in_c;
  const bool dense = pixels == 1;
  const double bytes = dense ? sizeof(Weight) * macs : 0;
  report(isa, std::string(kernel.name) + " " + layer.name, {2 * macs, 0, bytes}, [&] {
    if (kernel.prepare_rows(s))
      kernel.prepare_input(s, input.data(), scratch.get(), 0, kernel.prepare_rows(s));
    kernel.run(s, packed.get(), input.data(), scratch.get(), {0, pixels, 0, (s.out_c + 63) / 64}, epilogue);
  });
}

void bench_u8(const Isa& isa, const Layer& layer) {
  const ConvShape& s = layer.shape;
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
    const Aligned packed = aligned(kernel.packed_bytes(s)), scratch = aligned(kernel.scratch_bytes(s)),
                  out = aligned((size_t)pixels * words(s.out_c) * 4);
    kernel.pack_weights(s, weights.data(), thresholds.data(), packed.get());
    const std::string what = layer.name + " " + kernel.name;
    report(isa, what + " prepare", {},
           [&] { kernel.prepare_input(s, input.data(), scratch.get(), 0, kernel.prepare_rows(s)); });
    report(isa, what, {0, 2 * macs, 0}, [&] {
      kernel.prepare_input(s, input.data(), scratch.get(), 0, kernel.prepare_rows(s));
      kernel.run(s, packed.get(), input.data(), scratch.get(), {0, pixels, 0, (s.out_c + 63) / 64},
                 {(uint32_t*)out.get(), words(s.out_c), nullptr});
    });
  }
}

void bench_window(const Isa& isa, const Layer& layer) {
  const ConvShape& s = layer.shape;
  const Vector<float> input = random_floats((size_t)s.in_h * s.in_w * s.in_c);
  const Vector<float> weights = random_floats((size_t)s.kernel_h * s.kernel_w * s.in_c);
  const Vector<uint32_t> bits((size_t)s.in_h * s.in_w * words(s.in_c), 0x5a5a1234);
  const Vector<int32_t> thresholds(s.in_c, 1);
  const int pixels = s.out_h * s.out_w;
  const Aligned out = aligned((size_t)pixels * s.out_c * 4),
                out_bits = aligned((size_t)pixels * words(s.out_c) * 4);
  const Epilogue epilogue = {nullptr, 0, (float*)out.get(), nullptr, nullptr, s.out_c, s.out_c, 0};
  const double flops = 2.0 * pixels * s.out_c * s.kernel_h * s.kernel_w;
  const ValueKernels& k = *isa.values;
  report(isa, "depthwise " + layer.name, {flops, 0, 0},
         [&] { k.depthwise_f32(s, weights.data(), input.data(), 0, s.out_h, epilogue, kNeverStop); });
  report(isa, "max f32 " + layer.name, {0, 0, 4.0 * input.size()},
         [&] { k.max_pool_f32(s, input.data(), 0, s.out_h, epilogue, kNeverStop); });
  report(isa, "average f32 " + layer.name, {0, 0, 4.0 * input.size()},
         [&] { k.average_pool_f32(s, input.data(), 0, s.out_h, epilogue, kNeverStop); });
  report(isa, "max bits " + layer.name, {0, 0, 4.0 * bits.size()}, [&] {
    k.max_pool_bits(s, nullptr, bits.data(), 0, s.out_h, (uint32_t*)out_bits.get(), kNeverStop);
  });
  report(isa, "binary depthwise " + layer.name, {}, [&] {
    isa.binary_depthwise(s, bits.data(), thresholds.data(), bits.data(), 0, s.out_h,
                         {(uint32_t*)out_bits.get(), words(s.out_c), nullptr}, kNeverStop);
  });
}

/// The epilogue of residual blocks over a map that is already in memory; bytes are all reads and writes.
void bench_epilogue(const Isa& isa, int size, int channels) {
  const int pixels = size * size;
  const Vector<float> input = random_floats((size_t)pixels * channels),
                      shortcut = random_floats(input.size());
  const Vector<float> scale = random_floats(channels);
  const Aligned value = aligned(input.size() * 4), bits = aligned((size_t)pixels * words(channels) * 4);
  EpilogueStep steps[3] = {};
  steps[0].kind = StepKind::kClamp;
  steps[0].high = 1e30f;
  steps[1].kind = StepKind::kScaleBias;
  steps[1].a = steps[1].b = scale.data();
  steps[2].kind = StepKind::kAdd;
  steps[2].tensor = shortcut.data();
  steps[2].tensor_pixel_stride = channels;
  const Epilogue epilogue = {steps,    3,        (float*)value.get(), (uint32_t*)bits.get(), nullptr,
                             channels, channels, words(channels)};
  const Epilogue only_bits = {nullptr, 0,        nullptr,  (uint32_t*)bits.get(),
                              nullptr, channels, channels, words(channels)};
  char text[100];
  std::snprintf(text, sizeof text, " %dx%dx%d", size, size, channels);
  report(isa, std::string("clamp scale bias add value bits") + text, {0, 0, 12.0 * input.size()},
         [&] { isa.values->elementwise_f32(input.data(), 0, pixels, epilogue, kNeverStop); });
  report(isa, std::string("sign bits of f32") + text, {0, 0, 4.0 * input.size()},
         [&] { isa.values->elementwise_f32(input.data(), 0, pixels, only_bits, kNeverStop); });
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
    const int bits = std::strcmp((*isa)->name, "avx512") == 0 ? 512
                     : std::strcmp((*isa)->name, "avx2") == 0 ? 256
                                                              : 0;
    g_peak_flops = bits == 0 ? NAN : bench::measure_fma(bits) * bench::measure_clock().ghz * 1e9;
    std::printf("%s: FMA peak %.1f GFLOP/s\n", (*isa)->name, g_peak_flops * 1e-9);
    for (const Layer& layer : byte_layers()) bench_u8(**isa, layer);
    for (const Layer& layer : float_layers()) {
      bench_real(**isa, *(*isa)->f32_conv, layer);
      bench_real(**isa, *(*isa)->f16_conv, layer);
    }
    for (const Layer& layer : window_layers()) bench_window(**isa, layer);
    bench_epilogue(**isa, 56, 64);
    bench_epilogue(**isa, 14, 256);
  }
  return 0;
}
