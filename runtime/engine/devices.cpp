#include "engine/devices.h"

#include "engine/device_choice.h"
#include "engine/device_name.h"
#include "gpu/gpu_backend.h"
#include "gpu/self_test.h"
#include "opencl/cl_api.h"
#include "opencl/context.h"
#include "threads/floating_point_scope.h"
#include "types/fail.h"

namespace phonebit::engine {

void use_opencl_library(const std::string& path) { opencl::use_library(path); }

std::string gpu_error() {
  try {
    opencl::api();
  } catch (const Error& error) {
    return error.what();
  }
  return opencl::devices().empty()
             ? opencl::library_path() + " offers no device with OpenCL 1.2 and a compiler"
             : "";
}

std::vector<GpuInfo> gpu_devices() {
  const threads::FloatingPointScope rounding;  // drivers start threads, which inherit it
  std::vector<GpuInfo> result;
  for (const opencl::ClDevice& device : opencl::devices()) {
    GpuInfo info{
        static_cast<const gpu::DeviceFacts&>(device), static_cast<int>(result.size()), {}, {}, device.id};
    info.capabilities = {{"images", device.has_images},
                         {"half", device.has_half},
                         {"fused_multiply_add", device.has_fma},
                         {"exact_division", device.has_exact_division},
                         {"unified_memory", device.has_unified_memory},
                         {"command_buffer", device.has_command_buffer || device.has_recordable_queue},
                         {"svm_coarse", device.has_svm_coarse},
                         {"svm_fine", device.has_svm_fine},
                         {"svm_atomics", device.has_svm_atomics}};
    info.kernels = gpu::table_choices(device);
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<SelfTestResult> gpu_self_test(const Options& options, bool again) {
  const threads::FloatingPointScope rounding;
  std::string label;
  const std::shared_ptr<gpu::Device> device = open_device(options, parse_device(options.device).gpu, &label);
  if (device == nullptr)
    fail(ErrorCode::input, "device '%s' is no GPU; expected 'gpu' or 'gpu:<index>'", options.device.c_str());
  return gpu::test_all_kernels(device, options, again);
}

}  // namespace phonebit::engine
