// How long a source must be read for its steps to be a small share of the energy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "energy/energy_trace.h"

namespace phonebit::engine::energy {

/// A source that is read, as by Meter::start and Meter::peek.
struct Readings {
  std::string source;  ///< name, for messages
  std::function<void()> start;
  std::function<Span()> peek;
};

struct WindowLimits {
  double seconds;          ///< minimum length
  double longest_s;        ///< length at which it ends in any case
  double max_uncertainty;  ///< it ends when one step of the source is at most this share of its energy
};

/// Energy of a window, and how often the work was done in it.
struct Window {
  Span span;
  int64_t calls;
};

/// Calls `work` again and again; `clock` tells seconds. Throws Error(device) if the source stops, or shows
/// nothing new in the whole window, and what `readings` and `work` throw.
Window measure_window(const Readings& readings, const WindowLimits& limits, const std::function<void()>& work,
                      const std::function<double()>& clock);

}  // namespace phonebit::engine::energy
