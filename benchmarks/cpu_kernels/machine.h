// What this machine can do at most, measured in the same run as the kernels: results are shares of these
// bounds.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

namespace bench {

/// Seconds of CPU time of this thread: others that share the core cost cache contents, but not their own time.
double now();

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};

/// Memory as the runtime's arenas hold it: aligned to 64 bytes, zeros, with room after its end.
using Aligned = std::unique_ptr<char, FreeAligned>;
Aligned aligned(size_t bytes);

/// Core clock in GHz from a chain of dependent instructions with a known latency. Additions of constants will
/// not do: recent Intel cores fold them at register renaming, and a chain of them reads several times the clock.
double measure_clock();

/// Bytes per second that one thread reads from a buffer of this size after it has been read before.
double measure_read_bandwidth(size_t bytes);

/// Multiply-accumulates per cycle that registers alone allow; 0 where the machine lacks the instructions.
struct Bounds {
  double popcount;    // xor + vpopcnt + add of 512 bits
  double carry_save;  // xor + 2 ternary logic + vpopcnt + add of 512 bits, which cover two words
};

Bounds measure_bounds();

/// Model name of the processor.
std::string processor_name();

struct Timing {
  double median_s, low_s, high_s;  // low and high: quartiles
  int samples, calls_per_sample;
};

/// Times `call` in short samples, so that a sample which shares its core with somebody else is an outlier,
/// not a bias.
Timing time_calls(const std::function<void()>& call);

}  // namespace bench
