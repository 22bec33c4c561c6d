// Weights that a layer reads once, front to back, arrive from memory or a far cache. Software prefetches keep
// more of them on their way than processors by themselves ask for: those stop at the ends of pages (Intel) or
// run too short a distance ahead (AMD). The distance was measured: a short one costs
// more than it brings.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h.
#pragma once

/// To be called with each kBytes of a stream; less than a line asks for nothing.
template <int kBytes>
PHONEBIT_INLINE void ask_ahead([[maybe_unused]] const void* stream) {
  if constexpr (kStreamAheadBytes > 0) {
    for (int i = 0; i + 64 <= kBytes; i += 64)
      __builtin_prefetch((const char*)stream + kStreamAheadBytes + i, 0, 3);
  }
}
