#include "machine.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace bench {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Aligned aligned(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes + 64) != 0) std::abort();
  std::memset(p, 0, bytes + 64);
  return Aligned((char*)p);
}

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

#define REPEAT_16(x) x x x x x x x x x x x x x x x x

// An exclusive or of two registers takes one cycle everywhere and cannot be folded (the second one never
// holds the same value, so it is no zero idiom either).
__attribute__((noinline)) void chain(long n) {
#if defined(__x86_64__)
  uint64_t x = 1;
  asm volatile("1:\n" REPEAT_16("xorq %1, %0\n") "decq %1\n jnz 1b\n" : "+r"(x), "+r"(n) : : "cc");
#elif defined(__aarch64__)
  uint64_t x = 1;
  asm volatile("1:\n" REPEAT_16("eor %0, %0, %1\n") "subs %1, %1, #1\n b.ne 1b\n"
               : "+r"(x), "+r"(n)
               :
               : "cc");
#else
  for (volatile long i = 0; i < n; i = i + 1) continue;
#endif
}

}  // namespace

double measure_clock() {
  constexpr long kLoops = 3000;
  chain(20000);  // leave any idle state
  std::vector<double> ghz;
  for (int i = 0; i < 15; ++i) {
    const double start = now();
    chain(kLoops);
    ghz.push_back(kLoops * 16 / (now() - start) / 1e9);
  }
  return median(ghz);
}

namespace {

// Wide vectors, eight sums: the loop waits for memory and nothing else. The vector type is the compiler's,
// which splits it where registers are narrower.
typedef uint64_t Vector __attribute__((vector_size(64)));

__attribute__((always_inline)) inline uint64_t or_all(const Vector* from, size_t count) {
  Vector sums[8] = {};
  for (size_t i = 0; i < count; i += 8) {
    for (int j = 0; j < 8; ++j) sums[j] |= from[i + j];
  }
  for (int j = 1; j < 8; ++j) sums[0] |= sums[j];
  return sums[0][0];
}

uint64_t read_portable(const Vector* from, size_t count) { return or_all(from, count); }

#if defined(__x86_64__)
__attribute__((target("avx512f"))) uint64_t read_avx512(const Vector* from, size_t count) {
  return or_all(from, count);
}

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f");
}
#endif

}  // namespace

double measure_read_bandwidth(size_t bytes) {
  const size_t count = bytes / sizeof(Vector) / 8 * 8;
  const Aligned buffer = aligned(count * sizeof(Vector));
  std::memset(buffer.get(), 1, count * sizeof(Vector));
  uint64_t (*read)(const Vector*, size_t) = read_portable;
#if defined(__x86_64__)
  if (has_avx512()) read = read_avx512;
#endif
  volatile uint64_t sink = 0;
  const Timing timing = time_calls([&] { sink = sink + read((const Vector*)buffer.get(), count); });
  return count * sizeof(Vector) / timing.median_s;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Timing time_calls(const std::function<void()>& call) {
  constexpr int kSamples = 41;
  constexpr double kSampleSeconds = 100e-6;
  call();
  call();
  const double start = now();
  call();
  const double once = std::max(now() - start, 1e-9);
  const int calls = (int)std::clamp(kSampleSeconds / once, 1.0, 10000.0);
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) {
    const double begin = now();
    for (int j = 0; j < calls; ++j) call();
    seconds.push_back((now() - begin) / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4], kSamples, calls};
}

#if !defined(__x86_64__)
Bounds measure_bounds() { return {0, 0}; }
#endif

}  // namespace bench
