// --devices: what a network would run on here, and what can measure its energy.
#include <cstdio>
#include <sstream>

#include "engine.h"
#include "modes.h"

namespace phonebit::tools {
namespace {

constexpr uint64_t bytes_per_mb = 1000000;

void write_cpu(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object();
  json.text("name", device.name.substr(4)).text("features", device.description);
  json.flag("supported", device.is_supported);
  json.end_object();
}

void write_gpu(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object();
  json.text("device", device.name).text("name", device.description).text("platform", device.platform);
  json.text("vendor", device.vendor).text("family", device.family).text("version", device.version);
  json.text("driver_version", device.driver).flag("is_gpu", device.kind == DeviceKind::gpu);
  json.whole("compute_units", device.compute_units).whole("clock_mhz", device.clock_mhz);
  json.whole("global_bytes", static_cast<int64_t>(device.memory_bytes));
  json.whole("local_bytes", static_cast<int64_t>(device.local_bytes));
  json.key("capabilities").begin_array();
  std::istringstream names(device.capabilities);
  for (std::string name; names >> name;) json.text(name);
  json.end_array();
  json.end_object();
}

void write_core(JsonWriter& json, const CoreInfo& core) {
  json.begin_object().whole("core", core.index).whole("max_mhz", core.max_mhz);
  json.whole("capacity", core.capacity).flag("is_big", core.is_big).flag("is_little", core.is_little);
  json.end_object();
}

void write_source(JsonWriter& json, const EnergySourceInfo& source) {
  json.begin_object().text("name", source.name).flag("available", source.is_available);
  json.text("description", source.description).text("kind", source.is_counter ? "counter" : "power");
  json.real("period_ms", source.period_ms).end_object();
}

/// An array with the entries of a list that `is_wanted`.
template <class Entries, class Write, class Wanted>
void write_list(JsonWriter& json, const char* name, const Entries& entries, const Write& write,
                const Wanted& is_wanted) {
  json.key(name).begin_array();
  for (const auto& entry : entries)
    if (is_wanted(entry)) write(json, entry);
  json.end_array();
}

void print_json(const std::vector<DeviceInfo>& found) {
  const auto is_cpu = [](const DeviceInfo& device) { return device.kind == DeviceKind::cpu; };
  const auto is_vulkan = [](const DeviceInfo& device) { return device.name.rfind("vulkan", 0) == 0; };
  const auto is_opencl = [&](const DeviceInfo& device) { return !is_cpu(device) && !is_vulkan(device); };
  const auto always = [](const auto&) { return true; };
  JsonWriter json;
  json.begin_object().text("runtime_version", version());
  write_list(json, "isas", found, write_cpu, is_cpu);
  write_list(json, "opencl", found, write_gpu, is_opencl);
  write_list(json, "vulkan", found, write_gpu, is_vulkan);
  json.text("opencl_error", opencl_error());
  write_list(json, "cores", checked(cores()), write_core, always);
  write_list(json, "energy", checked(energy_sources()), write_source, always);
  json.end_object();
  std::printf("%s\n", json.document().c_str());
}

void print_text(const std::vector<DeviceInfo>& found) {
  for (const DeviceInfo& device : found) {
    if (device.kind == DeviceKind::cpu) {
      std::printf("%-12s %s%s\n", device.name.c_str(), device.description.c_str(),
                  device.is_supported ? "" : " (not on this machine)");
      continue;
    }
    std::printf("%-12s %s, %s/%s, %d compute units at %d MHz, %llu MB\n", device.name.c_str(),
                device.description.c_str(), device.vendor.c_str(), device.family.c_str(),
                device.compute_units, device.clock_mhz,
                static_cast<unsigned long long>(device.memory_bytes / bytes_per_mb));
    std::printf("%-12s %s, driver %s, %s; has %s\n", "", device.version.c_str(), device.driver.c_str(),
                device.platform.c_str(), device.capabilities.c_str());
  }
  if (const std::string error = opencl_error(); !error.empty())
    std::printf("%-12s %s\n", "no gpu", error.c_str());
  for (const CoreInfo& core : checked(cores()))
    std::printf("core %-7d %d MHz, capacity %d%s%s\n", core.index, core.max_mhz, core.capacity,
                core.is_big ? ", big" : "", core.is_little ? ", little" : "");
  for (const EnergySourceInfo& source : checked(energy_sources()))
    std::printf("energy %-5s %s%s\n", source.name.c_str(),
                source.is_available ? "" : "absent: ", source.description.c_str());
}

}  // namespace

int list_devices(const Arguments& arguments) {
  if (!arguments.files().empty()) fail("--devices takes no FILE");
  const std::vector<DeviceInfo> found = checked(devices());
  arguments.has("--json") ? print_json(found) : print_text(found);
  return exit_ok;
}

}  // namespace phonebit::tools
