// cl_khr_command_buffer: found per platform, and released without knowing which it was.
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "opencl/cl_functions.h"
#include "opencl/handle.h"

namespace phonebit::engine::opencl {
namespace {

/// Never destroyed, like the library. A map: its elements stay where they are.
struct Registry {
  std::mutex mutex;
  std::map<cl_platform_id, CommandBufferApi> platforms;  // version 0: has none
  std::map<cl_command_buffer, const CommandBufferApi*> owners;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

/// The extension's version on a device; 0 if it has none or does not tell.
cl_uint extension_version(cl_device_id device) {
  size_t bytes = 0;
  if (api().clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &bytes) != CL_SUCCESS)
    return 0;
  std::vector<cl_name_version> extensions(bytes / sizeof(cl_name_version));
  bytes = extensions.size() * sizeof(cl_name_version);
  if (extensions.empty() || api().clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, bytes,
                                                  extensions.data(), nullptr) != CL_SUCCESS)
    return 0;
  for (const cl_name_version& extension : extensions) {
    if (std::strncmp(extension.name, "cl_khr_command_buffer", sizeof extension.name) == 0)
      return extension.version;
  }
  return 0;
}

cl_uint extension_version(cl_platform_id platform) {
  cl_uint count = 0;
  if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0)
    return 0;
  std::vector<cl_device_id> devices(count);
  if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS)
    return 0;
  for (const cl_device_id device : devices) {
    if (const cl_uint version = extension_version(device)) return version;
  }
  return 0;
}

CommandBufferApi find(cl_platform_id platform) {
  CommandBufferApi found{};
  const cl_uint version = extension_version(platform);
  if (version == 0) return found;
  bool is_complete = true;
  const auto resolve = [&](auto& function, const char* name) {
    void* const address = api().clGetExtensionFunctionAddressForPlatform(platform, name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
    is_complete = is_complete && address != nullptr;
  };
  resolve(found.clCreateCommandBufferKHR, "clCreateCommandBufferKHR");
  resolve(found.clFinalizeCommandBufferKHR, "clFinalizeCommandBufferKHR");
  resolve(found.clReleaseCommandBufferKHR, "clReleaseCommandBufferKHR");
  resolve(found.clEnqueueCommandBufferKHR, "clEnqueueCommandBufferKHR");
  resolve(found.clCommandNDRangeKernelKHR, "clCommandNDRangeKernelKHR");
  if (is_complete) found.version = version;
  return found;
}

}  // namespace

const CommandBufferApi* command_buffer_api(cl_platform_id platform) {
  Registry& shared = registry();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  auto at = shared.platforms.find(platform);
  if (at == shared.platforms.end()) at = shared.platforms.emplace(platform, find(platform)).first;
  return at->second.version != 0 ? &at->second : nullptr;
}

cl_command_buffer CommandBufferApi::create(cl_command_queue queue, cl_int* status) const {
  const cl_command_buffer buffer = clCreateCommandBufferKHR(1, &queue, nullptr, status);
  if (*status != CL_SUCCESS) return nullptr;
  Registry& shared = registry();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  shared.owners[buffer] = this;
  return buffer;
}

void release(cl_command_buffer object) noexcept {
  Registry& shared = registry();
  const CommandBufferApi* owner = nullptr;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    const auto at = shared.owners.find(object);
    if (at == shared.owners.end())
      return;  // not from CommandBufferApi::create: nobody knows how to release it
    owner = at->second;
    shared.owners.erase(at);
  }
  owner->clReleaseCommandBufferKHR(object);
}

}  // namespace phonebit::engine::opencl
