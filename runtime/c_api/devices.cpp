// Processors of this machine.
#include "engine/devices.h"

#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "engine/network.h"
#include "status.h"
#include "threads/affinity.h"
#include "threads/processor_topology.h"

using namespace phonebit::engine;
using namespace phonebit::engine::c_api;

namespace {

/// The texts of a phonebit_device_info, and its numbers.
struct Device {
  std::string name, description, driver, platform, version, vendor, family, capabilities;
  phonebit_device_kind kind = PHONEBIT_DEVICE_CPU;
  bool is_supported = true;
  int compute_units = 0, clock_mhz = 0;
  uint64_t memory_bytes = 0, local_bytes = 0;
};

Device describe(const IsaInfo& isa) {
  Device device;
  device.name = "cpu:" + isa.name;
  device.description = isa.features;
  device.is_supported = isa.supported;
  device.compute_units = threads::available_processors();
  return device;
}

Device describe(const OpenClDeviceInfo& info) {
  Device device;
  device.name = "gpu:" + std::to_string(info.index);
  device.description = info.name;
  device.driver = info.driver_version;
  device.platform = info.platform;
  device.version = info.version;
  device.vendor = info.vendor;
  device.family = info.family;
  for (const auto& [capability, has] : info.capabilities) {
    if (!has) continue;
    if (!device.capabilities.empty()) device.capabilities += ' ';
    device.capabilities += capability;
  }
  device.kind = info.is_gpu ? PHONEBIT_DEVICE_GPU : PHONEBIT_DEVICE_OTHER;
  device.compute_units = info.compute_units;
  device.clock_mhz = info.clock_mhz;
  device.memory_bytes = info.global_bytes;
  device.local_bytes = info.local_bytes;
  return device;
}

std::vector<Device> find_devices() {
  std::vector<Device> found;
  for (const IsaInfo& isa : instruction_sets()) found.push_back(describe(isa));
  for (const OpenClDeviceInfo& info : opencl_devices()) found.push_back(describe(info));
  return found;
}

/// Looked for once: neither instruction sets nor the engine's OpenCL devices change.
const std::vector<Device>& devices() {
  static const std::vector<Device> found = find_devices();
  return found;
}

}  // namespace

phonebit_status phonebit_device_count(int32_t* count) {
  return guarded([&] { given(count, "count") = static_cast<int32_t>(devices().size()); });
}

phonebit_status phonebit_device_get(int32_t index, phonebit_device_info* info) {
  return guarded([&] {
    phonebit_device_info& result = given(info, "info");
    const Device& device = devices()[checked_index(index, devices().size(), "devices")];
    phonebit_device_info content{};
    content.kind = device.kind;
    content.name = device.name.c_str();
    content.description = device.description.c_str();
    content.driver = device.driver.c_str();
    content.is_supported = device.is_supported ? 1 : 0;
    content.compute_units = device.compute_units;
    content.clock_mhz = device.clock_mhz;
    content.memory_bytes = device.memory_bytes;
    content.local_bytes = device.local_bytes;
    content.platform = device.platform.c_str();
    content.version = device.version.c_str();
    content.vendor = device.vendor.c_str();
    content.family = device.family.c_str();
    content.capabilities = device.capabilities.c_str();
    give(result, content, "phonebit_device_info");
  });
}

const char* phonebit_opencl_error(void) {
  static thread_local std::string text;
  const phonebit_status status = guarded([] { text = opencl_error(); });
  return status == PHONEBIT_OK ? text.c_str() : phonebit_last_error();
}

phonebit_status phonebit_use_opencl_library(const char* path) {
  return guarded([&] { use_opencl_library(given_text(path, "path")); });
}

phonebit_status phonebit_core_count(int32_t* count) {
  return guarded([&] { given(count, "count") = static_cast<int32_t>(threads::online_processors().size()); });
}

phonebit_status phonebit_core_get(int32_t index, phonebit_core_info* info) {
  return guarded([&] {
    phonebit_core_info& result = given(info, "info");
    const std::vector<threads::Processor> cores = threads::online_processors();
    const threads::Processor& core = cores[checked_index(index, cores.size(), "cores")];
    phonebit_core_info content{};
    content.index = core.index;
    content.max_mhz = core.max_mhz;
    content.capacity = core.capacity;
    content.is_big = core.is_big ? 1 : 0;
    content.is_little = core.is_little ? 1 : 0;
    give(result, content, "phonebit_core_info");
  });
}
