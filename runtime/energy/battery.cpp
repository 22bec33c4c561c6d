// Batteries of phones and laptops: what flows out of them while nothing charges them.
//
// "/sys/class/power_supply/*" of type Battery. Power is "power_now" (uW), or "current_now" (uA) times
// "voltage_now" (uV), sampled. Whether a current out of the battery is negative differs from phone to phone,
// so the sign is not used: "status" must be Discharging at every reading, and the magnitude counts. Where
// only the charge is known
// ("charge_counter", "charge_now": uAh, or "energy_now": uWh) its differences count: large steps, so that a
// measurement takes minutes.
//
// A battery feeds the whole device, screen and radio included. Fuel gauges average over their last seconds:
// measure long.
#include <algorithm>
#include <cmath>

#include "energy/small_files.h"
#include "energy/sysfs_sources.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

using Folders = std::vector<std::string>;

constexpr const char* kPowerSupplies = "sys/class/power_supply";
constexpr const char* kBatteryClosedHint = "on Android run it in `adb shell`, on many phones as root";
constexpr double kMjPerUwh = 3.6;
/// No device that runs a network draws less; such a number is in another unit than the kernel's rules say
/// (some phones write mA instead of uA).
constexpr double kMinMw = 10.0;

double read_value(const std::string& path) {
  return static_cast<double>(read_integer(path, kBatteryClosedHint));
}

void require_discharging(const std::string& folder) {
  const std::string status = read_text(folder + "/status", kBatteryClosedHint);
  if (status == "Discharging") return;
  fail(ErrorCode::device,
       "%s/status: the battery is not what feeds the device (expected Discharging, got %s); unplug the "
       "charger (adb works over Wi-Fi), wait until the status is Discharging",
       folder.c_str(), status.empty() ? "nothing" : status.c_str());
}

bool has_power(const std::string& folder) {
  const bool has_product = exists(folder + "/current_now") && exists(folder + "/voltage_now");
  return exists(folder + "/power_now") || has_product;
}

double power_mw(const std::string& folder) {
  require_discharging(folder);
  double power = 0.0;
  if (exists(folder + "/power_now"))
    power = std::fabs(read_value(folder + "/power_now")) * 1e-3;
  else
    power = std::fabs(read_value(folder + "/current_now") * read_value(folder + "/voltage_now")) * 1e-9;
  if (power < kMinMw)
    fail(ErrorCode::device,
         "%s: implausible power (expected %g mW or more: current_now in uA, voltage_now in uV, got %g mW); "
         "this device's kernel uses other units: measure with another source",
         folder.c_str(), kMinMw, power);
  return power;
}

/// What is left in a battery, and mJ of one unit of it.
struct Charge {
  double left, unit_mj;
};

Charge charge_of(const std::string& folder) {
  require_discharging(folder);
  if (exists(folder + "/energy_now")) return {read_value(folder + "/energy_now"), kMjPerUwh};
  for (const char* name : {"/charge_counter", "/charge_now"}) {
    if (!exists(folder + name)) continue;
    const double volts = read_value(folder + "/voltage_now") * 1e-6;
    return {read_value(folder + name), kMjPerUwh * volts};
  }
  fail(ErrorCode::device,
       "%s: the battery tells neither power nor charge (expected power_now, or current_now and voltage_now, "
       "or charge_counter and voltage_now)",
       folder.c_str());
}

double largest_unit_mj(const Folders& folders) {
  double largest = 0.0;
  for (const std::string& folder : folders) largest = std::max(largest, charge_of(folder).unit_mj);
  return largest;
}

std::vector<Rail> rails_of(const Folders& folders) {
  std::vector<Rail> rails;
  for (const std::string& folder : folders) rails.push_back({folder.substr(folder.rfind('/') + 1)});
  return rails;
}

/// Power that batteries give, sampled.
class BatteryPowerSource : public Source {
 public:
  explicit BatteryPowerSource(const Folders& folders)
      : Source(
            {"battery", "the whole device, from its battery, sampled", false, 0.0, 0.1, rails_of(folders)}),
        folders_(folders) {
    read();
  }

  std::vector<double> read() override {
    std::vector<double> powers_mw;
    for (const std::string& folder : folders_) powers_mw.push_back(power_mw(folder));
    return powers_mw;
  }

 private:
  Folders folders_;
};

/// Energy that left batteries, from their charge.
class BatteryChargeSource : public Source {
 public:
  explicit BatteryChargeSource(const Folders& folders)
      : Source({"battery", "the whole device, from its battery's charge", true, largest_unit_mj(folders), 0.1,
                rails_of(folders)}),
        folders_(folders),
        totals_mj_(folders.size(), 0.0) {
    for (const std::string& folder : folders_) left_.push_back(charge_of(folder).left);
  }

  std::vector<double> read() override {
    for (size_t i = 0; i < folders_.size(); ++i) {
      const Charge now = charge_of(folders_[i]);
      totals_mj_[i] += (left_[i] - now.left) * now.unit_mj;
      left_[i] = now.left;
    }
    return totals_mj_;
  }

 private:
  Folders folders_;
  std::vector<double> left_, totals_mj_;
};

/// Batteries of the device itself: a mouse's has the scope "Device".
Folders batteries_below(const std::string& supplies) {
  Folders batteries;
  std::string silent;
  for (const std::string& name : names_in(supplies, kBatteryClosedHint)) {
    const std::string folder = below(supplies, name);
    const std::string type = readable_text(folder + "/type");
    if (type.empty()) silent = folder;
    if (type == "Battery" && readable_text(folder + "/scope") != "Device") batteries.push_back(folder);
  }
  // Android closes some supplies to some users: that is not the same as no battery.
  if (batteries.empty() && !silent.empty()) read_text(silent + "/type", kBatteryClosedHint);
  if (batteries.empty()) fail(ErrorCode::device, "%s: no battery", supplies.c_str());
  return batteries;
}

}  // namespace

SourceList find_battery(const std::string& root) {
  const Folders batteries = batteries_below(below(root, kPowerSupplies));
  Folders in_use;
  for (const std::string& folder : batteries) {
    if (readable_text(folder + "/status") == "Discharging") in_use.push_back(folder);
  }
  if (in_use.empty()) {
    require_discharging(batteries.front());
    in_use.push_back(batteries.front());  // it has begun to discharge meanwhile
  }
  if (std::all_of(in_use.begin(), in_use.end(), has_power)) return list_of<BatteryPowerSource>(in_use);
  return list_of<BatteryChargeSource>(in_use);
}

}  // namespace phonebit::engine::energy
