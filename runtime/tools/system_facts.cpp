#include "system_facts.h"

#include <cstdlib>

#include "files.h"

namespace phonebit::tools {
namespace {

/// The number in a small file; absent where there is none.
std::optional<double> number_in(const std::string& path) {
  const std::string line = first_line(path);
  char* end = nullptr;
  const double number = std::strtod(line.c_str(), &end);
  if (line.empty() || *end != '\0') return std::nullopt;
  return number;
}

}  // namespace

std::vector<ThermalZone> thermal_zones(const std::string& root) {
  const std::string folder = root + "/class/thermal";
  std::vector<ThermalZone> zones;
  for (const std::string& name : names_in(folder)) {
    if (name.rfind("thermal_zone", 0) != 0) continue;
    const std::string zone = folder + "/" + name;
    const std::optional<double> millidegrees = number_in(zone + "/temp");
    if (!millidegrees) continue;
    const std::string type = first_line(zone + "/type");
    zones.push_back({type.empty() ? name : type, *millidegrees / 1000.0});
  }
  return zones;
}

int current_mhz(int processor, const std::string& root) {
  const std::string folder = root + "/devices/system/cpu/cpu" + std::to_string(processor);
  return static_cast<int>(number_in(folder + "/cpufreq/scaling_cur_freq").value_or(0.0) / 1000.0);
}

}  // namespace phonebit::tools
