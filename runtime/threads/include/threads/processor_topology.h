// Which processors a machine has, and which of them are the strong ones.
#pragma once

#include <string>
#include <vector>

namespace phonebit::engine::threads {

/// A processor that is online.
struct Processor {
  int index;     ///< the system's number
  int max_mhz;   ///< by cpufreq; 0: unknown
  int capacity;  ///< work per time, 1024 of the strongest: by the system, else from max_mhz; 0: unknown
  /// Strong: at least nearly as strong as the strongest, or of a middle cluster with more than half of its
  /// capacity. So the prime and the big cores of a phone with three clusters are big, and so are both
  /// clusters of one without weak cores.
  bool is_big;
  bool is_little;  ///< of the weakest cluster
};

/// The processors that are online, as the folder devices/system/cpu under `root` tells; where it does not,
/// those that the calling thread may run on, with nothing known of them. Where all are alike, or nothing is
/// known, all are big and little. In order of their numbers; at least one.
std::vector<Processor> online_processors(const std::string& root = "/sys");

}  // namespace phonebit::engine::threads
