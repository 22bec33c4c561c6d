// How a layer's work is cut into parts for the threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace phonebit::engine::cpu {

/// Cuts [0, total) into `parts` nearly equal runs whose borders are multiples of `grain`.
struct Split {
  int total = 0;
  int grain = 1;
  int parts = 1;

  int begin(int part) const {
    const int64_t grains = (int64_t{total} + grain - 1) / grain;
    return static_cast<int>(std::min<int64_t>(total, grains * part / parts * grain));
  }
  int end(int part) const { return begin(part + 1); }
};

/// Starting and joining a loop costs about a microsecond, and what lies at the borders of the threads' runs
/// comes from another core's cache: splitting a layer of less than two such parts gains nothing.
constexpr double kSmallestPartNs = 4000.0;
/// Parts a thread, where there is work enough: evens out threads that the system disturbs.
constexpr int kPartsPerThread = 4;

/// A layer can be cancelled between its parts. Estimates are those of the fastest instruction set: scalar code
/// takes fifty times as long.
constexpr double kLargestPartNs = 5e5;

/// A good number of parts for `work_ns` nanoseconds of one thread's work.
inline int part_count(double work_ns, int threads) {
  if (work_ns > kLargestPartNs * kPartsPerThread * threads)
    return static_cast<int>(std::min(work_ns / kLargestPartNs, 1e6));
  if (threads <= 1 || work_ns < 2 * kSmallestPartNs) return 1;
  const double maximum = std::min(work_ns / kSmallestPartNs, static_cast<double>(threads) * kPartsPerThread);
  // Whole rounds: with 3 parts on 2 threads one of them would idle a third of the time.
  const int parts = static_cast<int>(maximum);
  return parts >= threads ? parts / threads * threads : parts;
}

/// `total` units of work, in runs of multiples of `grain`.
inline Split make_split(int total, int grain, double work_ns, int threads) {
  const int grains = static_cast<int>((int64_t{total} + grain - 1) / grain);
  return {total, grain, std::max(1, std::min(part_count(work_ns, threads), grains))};
}

/// Memory-bound work: nanoseconds for reading and writing `bytes`.
inline double copy_ns(double bytes) { return bytes / 8.0; }

}  // namespace phonebit::engine::cpu
