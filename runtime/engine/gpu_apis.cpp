#include "engine/gpu_apis.h"

#include "opencl/cl_api.h"
#include "opencl/context.h"
#include "types/fail.h"

#if defined(PHONEBIT_VULKAN)
#include "vulkan/device.h"
#endif

namespace phonebit::engine {
namespace {

template <class Devices>
std::vector<const gpu::DeviceFacts*> facts_of(const Devices& devices) {
  std::vector<const gpu::DeviceFacts*> result;
  for (const auto& device : devices) result.push_back(&device);
  return result;
}

template <class Load>
std::string error_of(const Load& load) {
  try {
    return load();
  } catch (const Error& error) {
    return error.what();
  }
}

const GpuApi opencl_api = {
    "opencl",
    "gpu",
    [] { return facts_of(opencl::devices()); },
    [] {
      return error_of([] {
        const std::string& path = opencl::library_path();
        return opencl::devices().empty() ? path + " offers no device with OpenCL 1.2 and a compiler" : "";
      });
    },
    [](size_t index, Hint hint) -> std::shared_ptr<gpu::Device> {
      return opencl::Context::create(opencl::devices()[index], hint);
    },
    [](size_t index) -> void* { return opencl::devices()[index].id; },
};

#if defined(PHONEBIT_VULKAN)
const GpuApi vulkan_api = {
    "vulkan",
    "vulkan",
    [] { return facts_of(vulkan::devices()); },
    [] {
      return error_of([] {
        vulkan::instance();
        return vulkan::devices().empty() ? "Vulkan offers no device of version 1.1 that computes" : "";
      });
    },
    [](size_t index, Hint) -> std::shared_ptr<gpu::Device> {
      return std::make_shared<vulkan::Device>(vulkan::devices()[index]);
    },
    [](size_t) -> void* { return nullptr; },
};
#endif

}  // namespace

const std::vector<GpuApi>& gpu_apis() {
  static const std::vector<GpuApi> apis = {
      opencl_api,
#if defined(PHONEBIT_VULKAN)
      vulkan_api,
#endif
  };
  return apis;
}

}  // namespace phonebit::engine
