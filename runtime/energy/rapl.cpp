// RAPL: energy counters of Intel and AMD processors, as Linux shows them under powercap.
//
// Each package is a zone "intel-rapl:N" (AMD's too) with parts "intel-rapl:N:M". Counted are the packages
// and, where there is such a part, their memory ("dram"), which no package contains. Other parts (core,
// uncore) lie within a package; "psys" contains packages; "intel-rapl-mmio" shows a package a second time.
// Unit of the files: uJ; the processor counts in steps of 15 or 61 uJ and updates about every millisecond.
#include <limits>
#include <optional>

#include "energy/growing_counter.h"
#include "energy/small_files.h"
#include "energy/sysfs_sources.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

constexpr const char* kPowercap = "sys/class/powercap";
constexpr const char* kRaplClosedHint =
    "since Linux 5.10 only root may read it (it leaks secrets, CVE-2020-8694): run as root, or `sudo chmod "
    "a+r /sys/class/powercap/intel-rapl*/energy_uj` until the next start";

/// A supply and the folder in which it is counted.
struct Zone {
  std::string name, folder;
};

/// Values of a zone's counter; none where it does not say: then a wrap is an error.
std::optional<int64_t> modulus_uj(const Zone& zone) {
  const std::string file = zone.folder + "/max_energy_range_uj";
  const int64_t largest = exists(file) ? read_integer(file) : 0;
  if (largest <= 0 || largest == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return largest + 1;
}

class RaplSource : public Source {
 public:
  explicit RaplSource(const std::vector<Zone>& zones) : Source(info_of(zones)) {
    for (const Zone& zone : zones) {
      files_.push_back(zone.folder + "/energy_uj");
      counters_.emplace_back(files_.back(), modulus_uj(zone));
    }
    read();
  }

  std::vector<double> read() override {
    std::vector<double> energies_mj;
    for (size_t i = 0; i < files_.size(); ++i) {
      const int64_t counted_uj = counters_[i].advance(read_integer(files_[i], kRaplClosedHint));
      energies_mj.push_back(static_cast<double>(counted_uj) * 1e-3);
    }
    return energies_mj;
  }

 private:
  static SourceInfo info_of(const std::vector<Zone>& zones) {
    SourceInfo info{"rapl", "processor packages and memory, RAPL counters", true, 1e-3, 0.02, {}};
    for (const Zone& zone : zones) info.rails.push_back({zone.name});
    return info;
  }

  std::vector<std::string> files_;
  std::vector<GrowingCounter> counters_;
};

/// What "intel-rapl:N" or "intel-rapl:N:M" counts, as the rail is called; "" if it is not to be counted.
std::string rail_of_zone(const std::string& folder, const std::string& zone) {
  std::string_view rest = zone;
  const bool is_zone = take(rest, "intel-rapl:") && take_number(rest);
  if (!is_zone) return "";
  const std::string package = zone.substr(0, zone.size() - rest.size());
  const bool is_part = take(rest, ":") && take_number(rest);
  if (!rest.empty()) return "";
  const std::string name = read_text(below(folder, zone) + "/name");
  if (!is_part) return name.rfind("package", 0) == 0 ? name : "";
  if (name != "dram") return "";
  const std::string owner = readable_text(below(folder, package) + "/name");
  return owner.rfind("package", 0) == 0 ? owner + "/dram" : "";
}

}  // namespace

SourceList find_rapl(const std::string& root) {
  const std::string folder = below(root, kPowercap);
  std::vector<Zone> zones;
  for (const std::string& name : names_in(folder)) {
    const std::string rail = rail_of_zone(folder, name);
    if (!rail.empty()) zones.push_back({rail, below(folder, name)});
  }
  if (zones.empty())
    fail(ErrorCode::device,
         "%s: no package zone (expected intel-rapl:*); virtual machines have none; elsewhere: modprobe "
         "intel_rapl_msr",
         folder.c_str());
  return list_of<RaplSource>(zones);
}

}  // namespace phonebit::engine::energy
