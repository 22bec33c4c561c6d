// What the system tells of heat and clocks: the circumstances of a measurement on a phone.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phonebit::tools {

/// A place whose temperature is measured.
struct ThermalZone {
  std::string name;  ///< as the driver calls it: "cpu-1-0-usr", "skin"
  double celsius;
};

/// Zones that can be read now; none on a system that hides them.
std::vector<ThermalZone> thermal_zones(const std::string& root = "/sys");

/// Clock of a processor now, in MHz; 0: unknown.
int current_mhz(int processor, const std::string& root = "/sys");

}  // namespace phonebit::tools
