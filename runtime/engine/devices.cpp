#include "engine/devices.h"

#include "engine/device_choice.h"
#include "engine/device_name.h"
#include "engine/gpu_apis.h"
#include "gpu/gpu_backend.h"
#include "gpu/self_test.h"
#include "opencl/cl_api.h"
#include "threads/floating_point_scope.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

/// A row of what a device can do; `or_has` may be null.
struct Capability {
  const char* name;
  bool gpu::DeviceFacts::* has;
  bool gpu::DeviceFacts::* or_has = nullptr;
};

constexpr Capability kCapabilities[] = {
    {"images", &gpu::DeviceFacts::has_images},
    {"half", &gpu::DeviceFacts::has_half},
    {"fused_multiply_add", &gpu::DeviceFacts::has_fma},
    {"exact_division", &gpu::DeviceFacts::has_exact_division},
    {"unified_memory", &gpu::DeviceFacts::has_unified_memory},
    {"command_buffer", &gpu::DeviceFacts::has_command_buffer, &gpu::DeviceFacts::has_recordable_queue},
    {"svm_coarse", &gpu::DeviceFacts::has_svm_coarse},
    {"svm_fine", &gpu::DeviceFacts::has_svm_fine},
    {"svm_atomics", &gpu::DeviceFacts::has_svm_atomics},
};

GpuInfo describe(const GpuApi& api, const gpu::DeviceFacts& device, size_t index) {
  GpuInfo info{device,       format_text("%s:%zu", api.prefix, index), static_cast<int>(index), {}, {},
               api.id(index)};
  for (const Capability& row : kCapabilities)
    info.capabilities.emplace_back(row.name, device.*row.has || (row.or_has && device.*row.or_has));
  info.kernels = gpu::table_choices(device);
  return info;
}

}  // namespace

void use_opencl_library(const std::string& path) { opencl::use_library(path); }

std::string gpu_error(const std::string& api) {
  std::string reasons;
  for (const GpuApi& one : gpu_apis()) {
    if (!api.empty() && api != one.name) continue;
    if (!one.devices().empty()) return "";
    reasons += (reasons.empty() ? "" : "\n") + one.error();
  }
  return reasons.empty() ? "this build of PhoneBit has no " + api : reasons;
}

std::vector<GpuInfo> gpu_devices(const std::string& api) {
  const threads::FloatingPointScope rounding;  // drivers start threads, which inherit it
  std::vector<GpuInfo> result;
  for (const GpuApi& one : gpu_apis()) {
    if (!api.empty() && api != one.name) continue;
    const auto devices = one.devices();
    for (size_t i = 0; i < devices.size(); ++i) result.push_back(describe(one, *devices[i], i));
  }
  return result;
}

std::vector<SelfTestResult> gpu_self_test(const Options& options, bool again) {
  const threads::FloatingPointScope rounding;
  std::string label;
  const std::shared_ptr<gpu::Device> device = open_device(options, parse_device(options.device).gpu, &label);
  if (device == nullptr)
    fail(ErrorCode::input, "device '%s' is no GPU; expected the name of a GPU, as 'gpu'",
         options.device.c_str());
  return gpu::test_all_kernels(device, options, again);
}

}  // namespace phonebit::engine
