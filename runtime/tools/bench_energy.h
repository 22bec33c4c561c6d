// Energy per frame, and how long a frame takes: the same windows as `phonebit bench --energy`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "energy/energy_window.h"
#include "engine.h"

namespace phonebit::tools {

/// What was asked for.
struct EnergySettings {
  std::optional<std::string> source;  ///< by name; absent: the one that sees the device
  double seconds;                     ///< minimum length of a window
  bool has_idle;                      ///< whether the power without work is measured, too
};

/// Throws Failure for values that cannot be.
EnergySettings energy_settings(const Arguments& arguments);

/// A measurement of energy, or why there is none.
struct EnergyOutcome {
  bool is_measured;
  std::string error;                                         ///< where nothing is measured
  std::vector<std::pair<std::string, std::string>> sources;  ///< kinds that are absent or do not fit, why
  EnergySourceInfo source;
  std::string chosen;  ///< why this source
  int64_t frames;
  std::vector<engine::energy::Rail> rails;
  engine::energy::Span busy;
  std::optional<engine::energy::Span> idle;
};

/// Runs `work`, an inference of `batch` frames, for as long as the source needs to see it, with a window of
/// idleness before. Throws Failure where a source that was asked for cannot measure; where the choice was
/// left to us the outcome says why nothing is measured.
EnergyOutcome measure_energy(const EnergySettings& settings, const std::string& device, int batch,
                             const std::function<void()>& work);

void write_energy(JsonWriter& json, const EnergyOutcome& outcome);
void print_energy(const EnergyOutcome& outcome);

}  // namespace phonebit::tools
