#include "engine/device_choice.h"

#include <charconv>

#include "engine/device_name.h"
#include "engine/devices.h"
#include "engine/gpu_apis.h"
#include "opencl/context.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

struct Found {
  const GpuApi* api;  ///< null: none
  size_t index;
};

std::string device_list() {
  std::string list;
  for (const GpuInfo& info : gpu_devices())
    list += (list.empty() ? "" : ", ") + info.device + " " + info.name;
  return list.empty() ? "none" : list;
}

/// The first GPU; `is_any`: or whatever comes first where there is none. Later APIs are not even loaded.
Found first_device(bool is_any) {
  for (const GpuApi& api : gpu_apis()) {
    const auto devices = api.devices();
    if (!devices.empty() && devices[0]->is_gpu) return {&api, 0};
  }
  for (const GpuApi& api : gpu_apis())
    if (is_any && !api.devices().empty()) return {&api, 0};
  return {nullptr, 0};
}

/// What "vulkan" or "gpu:1" names.
Found named_device(const std::string& device) {
  const size_t colon = device.find(':');
  const std::string prefix = device.substr(0, colon);
  for (const GpuApi& api : gpu_apis()) {
    if (prefix != api.prefix) continue;
    size_t index = 0;
    if (colon != std::string::npos) {
      const char* const end = device.data() + device.size();
      const auto [stop, error] = std::from_chars(device.data() + colon + 1, end, index);
      if (error != std::errc() || stop != end) fail_unknown_device(device);
    }
    const size_t count = api.devices().size();
    if (count == 0) fail(ErrorCode::device, "device '%s': %s", device.c_str(), api.error().c_str());
    if (index >= count)
      fail(ErrorCode::device, "device '%s': there is no such device; there are: %s", device.c_str(),
           device_list().c_str());
    return {&api, index};
  }
  fail(ErrorCode::device, "device '%s': this build of PhoneBit has no %s", device.c_str(), prefix.c_str());
}

/// What "auto", "gpu" or "gpu:..." means.
Found find_gpu(const std::string& device) {
  if (device == "auto") return first_device(false);
  if (device != "gpu") return named_device(device);
  const Found found = first_device(true);
  if (found.api == nullptr) fail(ErrorCode::device, "device 'gpu': %s", gpu_error().c_str());
  return found;
}

}  // namespace

std::shared_ptr<gpu::Device> open_device(const Options& options, const std::string& device,
                                         std::string* label) {
  if (options.handles.context != nullptr) {
    const auto borrowed = opencl::Context::borrow(options.handles);
    *label = "gpu " + borrowed->facts().name;
    return borrowed;
  }
  if (device.empty()) return nullptr;
  const Found found = find_gpu(device);
  if (found.api == nullptr) return nullptr;
  *label = format_text("%s:%zu %s", found.api->prefix, found.index,
                       found.api->devices()[found.index]->name.c_str());
  return found.api->open(found.index, options.hint);
}

}  // namespace phonebit::engine
