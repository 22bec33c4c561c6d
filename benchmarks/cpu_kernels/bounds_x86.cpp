// The issue bounds of an x86-64 core, measured with loops that touch registers only.
//
// Written in assembly: this file needs no ISA flags, and no compiler can shorten the loops.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine.h"

namespace bench {

namespace {

/// Median over repetitions, each against a clock measured together with it.
double per_cycle(void (*loop)(long), double macs_per_loop) {
  constexpr long kLoops = 4000;
  std::vector<double> rates;
  for (int i = 0; i < 21; ++i) {
    const double ghz = measure_clock();
    const double start = now();
    loop(kLoops);
    rates.push_back(macs_per_loop * kLoops / ((now() - start) * ghz * 1e9));
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

// Eight accumulators each: chains are longer than any latency. zmm0-7 accumulate, zmm8-15 are temporaries.
#define EACH_8(STEP) \
  STEP(0, 8) STEP(1, 9) STEP(2, 10) STEP(3, 11) STEP(4, 12) STEP(5, 13) STEP(6, 14) STEP(7, 15)
#define XOR(A, T) "vpxord %%zmm16, %%zmm17, %%zmm" #T "\n"
#define AND_XOR(A, T) "vpternlogd $0x60, %%zmm18, %%zmm19, %%zmm" #T "\n"
#define XOR_3(A, T) "vpternlogd $0x96, %%zmm20, %%zmm21, %%zmm" #T "\n"
#define COUNT(A, T) "vpopcntd %%zmm" #T ", %%zmm" #T "\n"
#define ADD(A, T) "vpaddd %%zmm" #T ", %%zmm" #A ", %%zmm" #A "\n"
#define VECTOR_CLOBBERS                                                                                      \
  "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", "zmm11", "zmm12", \
      "zmm13", "zmm14", "zmm15", "cc"

__attribute__((target("avx512f"))) void popcount_loop(long n) {
  asm volatile("1:\n" EACH_8(XOR) EACH_8(COUNT) EACH_8(ADD) "decq %0\n jnz 1b\n vzeroupper\n"
               : "+r"(n)
               :
               : VECTOR_CLOBBERS);
}

__attribute__((target("avx512f"))) void carry_save_loop(long n) {
  asm volatile("1:\n" EACH_8(XOR) EACH_8(AND_XOR) EACH_8(XOR_3) EACH_8(COUNT)
                   EACH_8(ADD) "decq %0\n jnz 1b\n vzeroupper\n"
               : "+r"(n)
               :
               : VECTOR_CLOBBERS);
}

bool has_vpopcnt() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512f");
}

}  // namespace

Bounds measure_bounds() {
  Bounds bounds = {0, 0};
  if (has_vpopcnt()) {
    bounds.popcount = per_cycle(popcount_loop, 8 * 512);
    bounds.carry_save = per_cycle(carry_save_loop, 8 * 2 * 512);
  }
  return bounds;
}

}  // namespace bench
