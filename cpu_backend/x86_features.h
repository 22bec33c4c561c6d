// What an x86-64 processor has and the operating system saves. Asked of the processor itself: what
// __builtin_cpu_supports reads is always empty in programs that zig links.
#pragma once

#include <cpuid.h>

namespace phonebit::engine::cpu {

struct X86Features {
  unsigned ecx1 = 0, ebx7 = 0, ecx7 = 0;  // CPUID leaves 1 and 7
  unsigned saved = 0;                     // XCR0: which registers survive a switch of threads

  bool has(unsigned word, unsigned bits) const { return (word & bits) == bits; }
};

inline X86Features x86_features() {
  X86Features result;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return result;
  result.ecx1 = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    result.ebx7 = b;
    result.ecx7 = c;
  }
  constexpr unsigned kOsxsave = 1u << 27;
  if ((result.ecx1 & kOsxsave) != 0) asm volatile("xgetbv" : "=a"(result.saved), "=d"(d) : "c"(0));
  return result;
}

inline bool x86_has_popcnt() { return (x86_features().ecx1 & 1u << 23) != 0; }

/// With FMA, F16C, BMI2 and POPCNT.
inline bool x86_has_avx2() {
  const X86Features f = x86_features();
  return f.has(f.ecx1, 1u << 12 | 1u << 23 | 1u << 29) && f.has(f.ebx7, 1u << 5 | 1u << 8) &&
         f.has(f.saved, 0x6);
}

/// F, DQ, BW, VL; VBMI, GFNI, VNNI, BITALG, VPOPCNTDQ; and what x86_has_avx2 asks for.
inline bool x86_has_avx512() {
  const X86Features f = x86_features();
  return x86_has_avx2() && f.has(f.ebx7, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) &&
         f.has(f.ecx7, 1u << 1 | 1u << 8 | 1u << 11 | 1u << 12 | 1u << 14) && f.has(f.saved, 0xE6);
}

}  // namespace phonebit::engine::cpu
