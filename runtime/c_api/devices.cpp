// Processors of this machine.
#include "engine/devices.h"

#include <deque>
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

/// A text that lives as long as the library does.
const char* kept(std::string text) {
  static auto* const texts = new std::deque<std::string>;
  return texts->emplace_back(std::move(text)).c_str();
}

phonebit_device_info describe(const IsaInfo& isa) {
  phonebit_device_info device{};
  device.kind = PHONEBIT_DEVICE_CPU;
  device.name = kept("cpu:" + isa.name);
  device.description = kept(isa.features);
  device.driver = device.platform = device.version = device.vendor = device.family = device.capabilities = "";
  device.is_supported = isa.supported ? 1 : 0;
  device.compute_units = threads::available_processors();
  return device;
}

phonebit_device_info describe(const GpuInfo& info) {
  std::string capabilities;
  for (const auto& [capability, has] : info.capabilities)
    if (has) capabilities += (capabilities.empty() ? "" : " ") + std::string(capability);
  phonebit_device_info device{};
  device.kind = info.is_gpu ? PHONEBIT_DEVICE_GPU : PHONEBIT_DEVICE_OTHER;
  device.name = kept(info.device);
  device.description = kept(info.name);
  device.driver = kept(info.driver_version);
  device.platform = kept(info.platform_name);
  device.version = kept(info.version);
  device.vendor = kept(info.vendor);
  device.family = kept(info.family);
  device.capabilities = kept(capabilities);
  device.is_supported = 1;
  device.compute_units = info.compute_units;
  device.clock_mhz = info.clock_mhz;
  device.memory_bytes = info.global_bytes;
  device.local_bytes = info.local_bytes;
  return device;
}

std::vector<phonebit_device_info> find_devices() {
  std::vector<phonebit_device_info> found;
  for (const IsaInfo& isa : instruction_sets()) found.push_back(describe(isa));
  for (const GpuInfo& info : gpu_devices()) found.push_back(describe(info));
  return found;
}

/// Looked for once: neither instruction sets nor the engine's GPUs change.
const std::vector<phonebit_device_info>& devices() {
  static const std::vector<phonebit_device_info> found = find_devices();
  return found;
}

}  // namespace

phonebit_status phonebit_device_count(int32_t* count) {
  return guarded([&] { given(count, "count") = static_cast<int32_t>(devices().size()); });
}

phonebit_status phonebit_device_get(int32_t index, phonebit_device_info* info) {
  return guarded([&] {
    phonebit_device_info& result = given(info, "info");
    give(result, devices()[checked_index(index, devices().size(), "devices")], "phonebit_device_info");
  });
}

const char* phonebit_opencl_error(void) {
  static thread_local std::string text;
  const phonebit_status status = guarded([] { text = gpu_error("opencl"); });
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
    give(result, {0, core.index, core.max_mhz, core.capacity, core.is_big, core.is_little},
         "phonebit_core_info");
  });
}
