// The list of what a collection measures: orders.txt in a folder that `phonebit collect --orders` wrote
// (docs/coexecution.md has its form).
#pragma once

#include <phonebit/phonebit.h>

#include <optional>
#include <string>
#include <vector>

#include "measure/noise_probe.h"

namespace phonebit::tools {

/// One measurement: what each processor computes; absent: nothing.
struct PartPair {
  std::optional<Part> cpu, gpu;
};

/// How processors share memory and wait for each other, by the names of phonebit collect.
struct Way {
  std::string sharing, synchronization;

  bool operator==(const Way& other) const {
    return sharing == other.sharing && synchronization == other.synchronization;
  }
};

/// A layer to load, and what to measure of it.
struct Order {
  int number;
  std::string file;  ///< in the folder
  int layer;         ///< index in the file
  int threads;
  std::optional<Way> way;  ///< absent: the first that the device has
  int turns;               ///< of the measurements, of which the minimum counts
  std::vector<PartPair> pairs;
};

/// The noise probe.
struct ProbeOrder {
  std::string file;  ///< in the folder
  int layer;         ///< index in the file
  PartPair parts;    ///< both are there
  int repeats;       ///< in a turn; the layer's time is their minimum
  engine::measure::NoiseLimits limits;
};

/// A measurement job.
struct OrderList {
  std::string identity;    ///< results name it
  std::string probe_file;  ///< its layer's CPU kernel tells of the CPU
  int probe_layer;
  ProbeOrder noise_probe;
  std::string sharing_file;  ///< loads in every way that the device has
  std::vector<Way> ways;     ///< the cheaper ones first
  std::vector<int> threads;
  std::vector<Order> orders;
};

/// Reads the orders of a folder. Throws Failure, with the line, for anything that is not as written.
OrderList read_orders(const std::string& folder);

}  // namespace phonebit::tools
