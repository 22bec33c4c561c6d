// From readings to energy: what flowed between the first and the last, and how finely that is known.
//
// A counter's readings E(t) give E(last) - E(first). Power readings P(t) are integrated by trapezoids, the
// sum of (P(i) + P(i+1)) / 2 * (t(i+1) - t(i)), exact for power that changes linearly between readings.
// Neither is known better than one step of the source: at both ends up to a step may belong to the other
// side, in opposite directions, so the difference is off by at most one. A step is what is seen, not what a
// data sheet says: the largest energy between two readings that differ. A source that has gone silent makes
// it grow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "energy/energy_source.h"

namespace phonebit::engine::energy {

/// Energy between the first and the last reading of a trace.
struct Span {
  double window_s = 0.0;         ///< time between them
  std::vector<double> rails_mj;  ///< energy of each rail
  double energy_mj = 0.0;        ///< sum of those that count
  double step_mj = 0.0;          ///< how finely that is known; see above
  size_t changes = 0;            ///< readings that differed from the one before
  bool has_stopped = false;      ///< whether the source gave nothing new for too long

  double mean_mw() const { return energy_mj / window_s; }
  /// One step as a share of the energy: 1 where nothing is known.
  double uncertainty() const;
  /// Mean time between changes; the window, if there were none.
  double update_s() const;
};

/// Throws Error(device) if the source, of that name, has stopped.
void check_goes_on(const Span& span, const std::string& source);

/// Readings of one source in the order of time, of which only what a Span needs is kept: a trace never grows.
/// One thread at a time.
class Trace {
 public:
  /// Of a source with such rails, kind and unit; see Rail and SourceInfo.
  Trace(std::vector<bool> is_counted, bool is_counter, double unit_mj);
  explicit Trace(const SourceInfo& info);

  /// Takes a reading of every rail, mJ or mW, at a time in seconds. Throws Error(input) if there are not as
  /// many values as rails.
  void add(double time_s, const std::vector<double>& reading);

  /// Readings taken.
  size_t count() const noexcept { return count_; }

  /// Energy from the first reading to the last. Throws Error(input) before there are two.
  Span span() const;

 private:
  bool differs(const std::vector<double>& reading) const;
  void note_change();
  double counted_mj() const;
  double largest_step_mj() const;

  std::vector<bool> is_counted_;
  bool is_counter_;
  double unit_mj_;
  size_t count_ = 0, changes_ = 0;
  double first_s_ = 0.0, last_s_ = 0.0;
  std::vector<double> first_, last_;           // readings
  std::vector<double> flowed_mj_;              // of every rail since the first reading
  double changed_s_ = 0.0, changed_mj_ = 0.0;  // time and sum at the last change, or at the first reading
  double pause_s_ = 0.0, step_mj_ = 0.0;       // the largest between two changes
};

}  // namespace phonebit::engine::energy
