#include "engine/device_choice.h"

#include <charconv>

#include "engine/device_name.h"
#include "engine/devices.h"
#include "opencl/context.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

std::string device_list() {
  std::string list;
  const auto& devices = opencl::devices();
  for (size_t i = 0; i < devices.size(); ++i)
    list += format_text("%sgpu:%zu %s", i > 0 ? ", " : "", i, devices[i].name.c_str());
  return list.empty() ? "none" : list;
}

/// Index of the device that "auto", "gpu" or "gpu:..." means, or -1 for the CPU.
int gpu_index(const std::string& device) {
  const auto& devices = opencl::devices();
  if (device == "auto") return !devices.empty() && devices[0].is_gpu ? 0 : -1;
  unsigned index = 0;
  if (device != "gpu") {
    const char* const end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + 4, end, index);
    if (error != std::errc() || stop != end) fail_unknown_device(device);
  }
  if (devices.empty()) fail(ErrorCode::device, "device '%s': %s", device.c_str(), gpu_error().c_str());
  if (index >= devices.size())
    fail(ErrorCode::device, "device '%s': there is no such device; there are: %s", device.c_str(),
         device_list().c_str());
  return static_cast<int>(index);
}

}  // namespace

std::shared_ptr<gpu::Device> open_device(const Options& options, const std::string& device,
                                         std::string* label) {
  if (options.handles.context != nullptr) {
    const auto borrowed = opencl::Context::borrow(options.handles);
    *label = "gpu " + borrowed->facts().name;
    return borrowed;
  }
  const int index = device.empty() ? -1 : gpu_index(device);
  if (index < 0) return nullptr;
  const opencl::ClDevice& found = opencl::devices()[static_cast<size_t>(index)];
  *label = format_text("gpu:%d %s", index, found.name.c_str());
  return opencl::Context::create(found, options.hint);
}

}  // namespace phonebit::engine
