// How the calling thread's floating-point unit rounds.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace phonebit::engine::threads {

/// Makes the calling thread compute as IEEE 754 says by default (round to nearest, subnormal numbers kept) as
/// long as it lives, then hands back what the caller had set, exception flags included. Every entry into the
/// engine that computes has one, since results must not depend on a caller who rounds upwards (fesetround) or
/// flushes subnormal numbers to zero (-ffast-math, torch.set_flush_denormal). Threads inherit the state of
/// the thread that starts them, so the engine's own threads have one, too. Costs some nanoseconds.
class FloatingPointScope {
 public:
  FloatingPointScope() : before_(state()) { set_state(kDefault); }
  ~FloatingPointScope() { set_state(before_); }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
#if defined(__x86_64__) || defined(__i386__)
  using State = unsigned;
  static constexpr State kDefault = 0x1f80;  // all exceptions masked
  static State state() { return _mm_getcsr(); }
  static void set_state(State value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using State = uint64_t;
  static constexpr State kDefault = 0;
  static State state() {
    State value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_state(State value) { asm volatile("msr fpcr, %0" ::"r"(value) : "memory"); }
#elif defined(__arm__) && defined(__ARM_FP)
  using State = uint32_t;
  static constexpr State kDefault = 0;
  static State state() {
    State value;
    asm volatile("vmrs %0, fpscr" : "=r"(value));
    return value;
  }
  static void set_state(State value) { asm volatile("vmsr fpscr, %0" ::"r"(value) : "memory"); }
#else
  using State = int;
  static constexpr State kDefault = 0;
  static State state() { return 0; }
  static void set_state(State) {}
#endif

  const State before_;
};

}  // namespace phonebit::engine::threads
