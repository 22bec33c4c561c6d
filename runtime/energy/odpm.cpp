// ODPM: the power meters on the supply chips of Pixel phones.
//
// Each "/sys/bus/iio/devices/iio:device*/energy_value" holds a time stamp and a line a rail,
// "CH3(T=473848)[S2M_VDD_CPUCL2], 28071872": uJ since the phone started. Older phones write "NAME, number".
// Rails are outputs and branches next to each other: their sum is the energy of all that is metered, which is
// less than the battery gives.
#include <utility>

#include "energy/growing_counter.h"
#include "energy/small_files.h"
#include "energy/sysfs_sources.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

constexpr const char* kIioDevices = "sys/bus/iio/devices";
constexpr const char* kOdpmClosedHint =
    "Android lets only root and its own services read it: `adb root` on a userdebug build";

/// A rail's energy since the phone started.
struct RailEnergy {
  std::string name;
  int64_t energy_uj = 0;
};

/// "CH3(T=473848)[S2M_VDD_CPUCL2]" or "NAME": the name; "" of anything else.
std::string rail_name(std::string_view text) {
  std::string_view name = text;
  if (take(name, "CH") && take_number(name)) {
    if (take(name, "(T=") && (!take_number(name) || !take(name, ")"))) return "";
  }
  if (take(name, "[")) {
    if (name.empty() || name.back() != ']') return "";
    name.remove_suffix(1);
  } else {
    name = text;  // a name that begins as channels do
  }
  name = trimmed(name);
  return name.find_first_of("[]=") == std::string_view::npos ? std::string(name) : "";
}

RailEnergy read_line(const std::string& file, std::string_view line) {
  const size_t comma = line.find(',');
  if (comma != std::string_view::npos) {
    const std::string name = rail_name(trimmed(line.substr(0, comma)));
    const std::optional<int64_t> energy_uj = whole_number(trimmed(line.substr(comma + 1)));
    if (!name.empty() && energy_uj && *energy_uj >= 0) return {name, *energy_uj};
  }
  fail(ErrorCode::device, "%s: a line that is no rail (expected CH<n>(T=<ms>)[<rail>], <uJ>, got '%.60s')",
       file.c_str(), std::string(line).c_str());
}

/// All rails of a meter in their order.
std::vector<RailEnergy> read_meter(const std::string& file) {
  const std::string text = read_text(file, kOdpmClosedHint);
  std::vector<RailEnergy> rails;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const bool is_time_stamp = line.substr(0, 2) == "t=" || whole_number(line);
    if (!line.empty() && !is_time_stamp) rails.push_back(read_line(file, line));
  }
  if (rails.empty()) fail(ErrorCode::device, "%s: no rail in it", file.c_str());
  return rails;
}

/// A power meter's file and its rails.
struct PowerMeter {
  std::string file;
  std::vector<std::string> rails;
  std::vector<GrowingCounter> counters;

  explicit PowerMeter(const std::string& path) : file(path) {
    for (const RailEnergy& rail : read_meter(file)) {
      rails.push_back(rail.name);
      counters.emplace_back(file + ", rail " + rail.name, std::nullopt);
    }
  }

  void read(std::vector<double>& energies_mj) {
    const std::vector<RailEnergy> now = read_meter(file);
    for (size_t i = 0; i < rails.size(); ++i) {
      if (i >= now.size() || now[i].name != rails[i])
        fail(ErrorCode::device, "%s: rail %s has vanished; measure again", file.c_str(), rails[i].c_str());
      energies_mj.push_back(static_cast<double>(counters[i].advance(now[i].energy_uj)) * 1e-3);
    }
  }
};

class OdpmSource : public Source {
 public:
  explicit OdpmSource(std::vector<PowerMeter> meters) : Source(info_of(meters)), meters_(std::move(meters)) {
    read();
  }

  std::vector<double> read() override {
    std::vector<double> energies_mj;
    for (PowerMeter& meter : meters_) meter.read(energies_mj);
    return energies_mj;
  }

 private:
  static SourceInfo info_of(const std::vector<PowerMeter>& meters) {
    SourceInfo info{"odpm", "supply rails, on-device power meter (ODPM)", true, 1e-3, 0.05, {}};
    for (const PowerMeter& meter : meters) {
      for (const std::string& rail : meter.rails) info.rails.push_back({rail});
    }
    return info;
  }

  std::vector<PowerMeter> meters_;
};

}  // namespace

SourceList find_odpm(const std::string& root) {
  const std::string folder = below(root, kIioDevices);
  std::vector<PowerMeter> meters;
  for (const std::string& device : names_in(folder, kOdpmClosedHint)) {
    const std::string file = below(folder, device) + "/energy_value";
    if (device.rfind("iio:device", 0) == 0 && exists(file)) meters.emplace_back(file);
  }
  if (meters.empty()) fail(ErrorCode::device, "%s/iio:device*/energy_value: no power meter", folder.c_str());
  return list_of<OdpmSource>(std::move(meters));
}

}  // namespace phonebit::engine::energy
