// INA2xx and INA3221: shunt monitors on boards (Jetson and others), through Linux's hwmon.
//
// A chip is a folder "/sys/class/hwmon/hwmon*" whose "name" starts with "ina". Power of a channel is
// "powerN_input" (uW), or else "inN_input" (mV) times "currN_input" (mA). A board whose input is metered has
// a rail for it, of which the others are parts: then only that one is counted.
#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "energy/small_files.h"
#include "energy/sysfs_sources.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

constexpr const char* kMonitors = "sys/class/hwmon";

/// Power of one channel: from its own file, or from two.
struct Channel {
  std::string rail;
  std::string power_file;                  // "" where there is none
  std::string voltage_file, current_file;  // used then

  double power_mw() const {
    if (!power_file.empty()) return static_cast<double>(read_integer(power_file)) * 1e-3;
    const auto voltage_mv = static_cast<double>(read_integer(voltage_file));
    return voltage_mv * static_cast<double>(read_integer(current_file)) * 1e-3;
  }
};

/// Whether a rail is a whole module's supply on Jetson boards.
bool is_input(const Channel& channel) { return channel.rail == "VDD_IN" || channel.rail == "POM_5V_IN"; }

class InaSource : public Source {
 public:
  explicit InaSource(std::vector<Channel> channels)
      : Source(info_of(channels)), channels_(std::move(channels)) {
    read();
  }

  std::vector<double> read() override {
    std::vector<double> powers_mw;
    for (const Channel& channel : channels_) powers_mw.push_back(channel.power_mw());
    return powers_mw;
  }

 private:
  static SourceInfo info_of(const std::vector<Channel>& channels) {
    SourceInfo info{"ina", "supply rails of the board, INA shunt monitors, sampled", false, 0.0, 0.01, {}};
    const bool has_input = std::any_of(channels.begin(), channels.end(), is_input);
    for (const Channel& channel : channels)
      info.rails.push_back({channel.rail, !has_input || is_input(channel)});
    return info;
  }

  std::vector<Channel> channels_;
};

/// "ina2", two digits and more; or "ina3221" and more.
bool is_ina(std::string_view name) {
  if (take(name, "ina3221")) return true;
  const auto is_digit = [&](size_t i) {
    return i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) != 0;
  };
  return take(name, "ina2") && is_digit(0) && is_digit(1);
}

/// N of a file "<prefix>N_input"; 0 of others: channels are numbered from 1.
int64_t channel_number(std::string_view file, std::string_view prefix) {
  if (!take(file, prefix)) return 0;
  const std::optional<int64_t> number = take_number(file);
  return number && file == "_input" ? *number : 0;
}

/// "inN_<what>" of a chip.
std::string voltage_file(const std::string& chip, int64_t number, const char* what) {
  return format_text("%s/in%lld_%s", chip.c_str(), static_cast<long long>(number), what);
}

/// A chip's channels by number. A current without a voltage is no channel (INA3221 sums currents).
std::map<int64_t, Channel> channels_of(const std::string& chip) {
  const std::vector<std::string> files = names_in(chip);
  std::map<int64_t, Channel> channels;
  for (const std::string& file : files) {
    const int64_t number = channel_number(file, "power");
    if (number > 0) channels[number].power_file = below(chip, file);
  }
  for (const std::string& file : files) {
    const int64_t number = channel_number(file, "curr");
    const std::string voltage = voltage_file(chip, number, "input");
    if (number > 0 && channels.count(number) == 0 && exists(voltage))
      channels[number] = {"", "", voltage, below(chip, file)};
  }
  return channels;
}

/// The label of a channel; with the chip before it where another has the same; or chip and number.
std::string rail_name(const std::string& folder, const std::string& chip, int64_t number,
                      const std::vector<Channel>& others) {
  const std::string label = readable_text(voltage_file(below(folder, chip), number, "label"));
  if (label.empty()) return below(chip, std::to_string(number));
  const bool is_taken =
      std::any_of(others.begin(), others.end(), [&](const Channel& other) { return other.rail == label; });
  return is_taken ? below(chip, label) : label;
}

}  // namespace

SourceList find_ina(const std::string& root) {
  const std::string folder = below(root, kMonitors);
  std::vector<Channel> found;
  for (const std::string& chip : names_in(folder)) {
    if (!is_ina(readable_text(below(folder, chip) + "/name"))) continue;
    for (auto& [number, channel] : channels_of(below(folder, chip))) {
      channel.rail = rail_name(folder, chip, number, found);
      found.push_back(channel);
    }
  }
  if (found.empty()) fail(ErrorCode::device, "%s/hwmon*/name: no INA2xx or INA3221 chip", folder.c_str());
  return list_of<InaSource>(std::move(found));
}

}  // namespace phonebit::engine::energy
