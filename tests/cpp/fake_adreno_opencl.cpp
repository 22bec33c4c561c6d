// Stands in for an Adreno's library: the real one's devices, but with cl_qcom_recordable_queues in place of
// command buffers, and recordings of at most two kernels. As in such libraries, the extension's functions are
// exported and not found by name.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "opencl/cl_functions.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace phonebit::engine::opencl;

constexpr cl_uint kMaxKernels = 2;
constexpr cl_int kInvalidOperation = -59;

struct Kernel {
  cl_kernel copy;  // with its arguments
  cl_uint dimensions;
  std::array<size_t, 3> global, local;
  bool has_local;
};
struct Recording {
  cl_command_queue queue;
  std::vector<Kernel> kernels;
  bool is_ended = false;
};

std::set<cl_command_queue> recordable;
std::vector<Recording*> recordings;

void* real(const char* name) {
  static void* const library = ::dlopen("libOpenCL.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}
#define REAL(NAME) reinterpret_cast<decltype(Api::NAME)>(real(#NAME))

Recording* open_recording(cl_command_queue queue) {
  for (Recording* const each : recordings)
    if (each->queue == queue && !each->is_ended) return each;
  return nullptr;
}

cl_int get_device_info(cl_device_id device, cl_uint name, size_t room, void* value, size_t* bytes) noexcept {
  if (name == CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE) {
    std::memcpy(value, &kMaxKernels, sizeof kMaxKernels);
    return CL_SUCCESS;
  }
  if (name != CL_DEVICE_EXTENSIONS) return REAL(clGetDeviceInfo)(device, name, room, value, bytes);
  const std::string extensions = "cl_khr_byte_addressable_store cl_qcom_recordable_queues";
  if (bytes != nullptr) *bytes = extensions.size() + 1;
  if (value != nullptr) std::memcpy(value, extensions.c_str(), std::min(room, extensions.size() + 1));
  return CL_SUCCESS;
}

void* no_extension_function(cl_platform_id, const char*) noexcept { return nullptr; }

cl_command_queue create_queue(cl_context context, cl_device_id device, cl_bitfield flags,
                              cl_int* status) noexcept {
  const bool is_recordable = (flags & CL_QUEUE_RECORDABLE_QCOM) != 0;
  cl_command_queue const queue =
      REAL(clCreateCommandQueue)(context, device, flags & ~CL_QUEUE_RECORDABLE_QCOM, status);
  if (is_recordable) recordable.insert(queue);
  return queue;
}

/// The engine holds one reference to a recordable queue; another queue may lie where it was.
cl_int release_queue(cl_command_queue queue) noexcept {
  recordable.erase(queue);
  return REAL(clReleaseCommandQueue)(queue);
}

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                      const size_t* global, const size_t* local, cl_uint waits, const cl_event* events,
                      cl_event* event) noexcept {
  if (recordable.count(queue) == 0)
    return REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, local, waits, events,
                                        event);
  Recording* const recording = open_recording(queue);
  if (recording == nullptr || recording->kernels.size() == kMaxKernels) return kInvalidOperation;
  const auto clone = reinterpret_cast<cl_kernel (*)(cl_kernel, cl_int*)>(real("clCloneKernel"));
  cl_int status = CL_SUCCESS;
  Kernel added{clone(kernel, &status), dimensions, {}, {}, local != nullptr};
  std::copy_n(global, dimensions, added.global.begin());
  if (local != nullptr) std::copy_n(local, dimensions, added.local.begin());
  recording->kernels.push_back(added);
  return status;
}

}  // namespace

EXPORT Recording* clNewRecordingQCOM(cl_command_queue queue, cl_int* status) {
  if (recordable.count(queue) == 0 || open_recording(queue) != nullptr) {
    *status = kInvalidOperation;
    return nullptr;
  }
  *status = CL_SUCCESS;
  recordings.push_back(new Recording{queue, {}});
  return recordings.back();
}

EXPORT cl_int clEndRecordingQCOM(Recording* recording) {
  if (recording->is_ended) return kInvalidOperation;
  recording->is_ended = true;
  return CL_SUCCESS;
}

EXPORT cl_int clReleaseRecordingQCOM(Recording* recording) {
  for (const Kernel& kernel : recording->kernels) REAL(clReleaseKernel)(kernel.copy);
  recordings.erase(std::find(recordings.begin(), recordings.end(), recording));
  delete recording;
  return CL_SUCCESS;
}

EXPORT cl_int clEnqueueRecordingQCOM(cl_command_queue queue, Recording* recording, size_t arguments,
                                     const void*, size_t offsets, const void*, size_t globals, const void*,
                                     size_t locals, const void*, cl_uint waits, const cl_event*, cl_event*) {
  if (!recording->is_ended || arguments + offsets + globals + locals + waits != 0) return kInvalidOperation;
  for (const Kernel& kernel : recording->kernels) {
    const size_t* const local = kernel.has_local ? kernel.local.data() : nullptr;
    const cl_int status = REAL(clEnqueueNDRangeKernel)(queue, kernel.copy, kernel.dimensions, nullptr,
                                                       kernel.global.data(), local, 0, nullptr, nullptr);
    if (status != CL_SUCCESS) return status;
  }
  return CL_SUCCESS;
}

// The engine asks libraries of this kind for all other functions.
EXPORT void enableOpenCL() {}

EXPORT void* loadOpenCLPointer(const char* name) {
  const std::string wanted = name;
  if (wanted == "clGetDeviceInfo") return reinterpret_cast<void*>(&get_device_info);
  if (wanted == "clGetExtensionFunctionAddressForPlatform")
    return reinterpret_cast<void*>(&no_extension_function);
  if (wanted == "clCreateCommandQueue") return reinterpret_cast<void*>(&create_queue);
  if (wanted == "clReleaseCommandQueue") return reinterpret_cast<void*>(&release_queue);
  if (wanted == "clEnqueueNDRangeKernel") return reinterpret_cast<void*>(&enqueue_kernel);
  return real(name);
}
