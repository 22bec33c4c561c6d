// Launches that a device is told once and then replays.
#include <cstring>
#include <vector>

#include "opencl/cl_functions.h"
#include "opencl/context.h"

namespace phonebit::engine::opencl {
namespace {

using cl_command_buffer = struct _cl_command_buffer_khr*;
using cl_recording = struct _cl_recording_qcom*;

struct CommandBufferFunctions {
  cl_command_buffer (*create)(cl_uint, const cl_command_queue*, const cl_properties*, cl_int*) noexcept;
  cl_int (*finalize)(cl_command_buffer) noexcept;
  cl_int (*release)(cl_command_buffer) noexcept;
  cl_int (*enqueue)(cl_uint, cl_command_queue*, cl_command_buffer, cl_uint, const cl_event*,
                    cl_event*) noexcept;
  cl_int (*add_kernel)(cl_command_buffer, cl_command_queue, const cl_properties*, cl_kernel, cl_uint,
                       const size_t*, const size_t*, const size_t*, cl_uint, const cl_uint*, cl_uint*,
                       void**) noexcept;
};
constexpr char kCommandBufferNames[] =
    "clCreateCommandBufferKHR\0clFinalizeCommandBufferKHR\0clReleaseCommandBufferKHR\0"
    "clEnqueueCommandBufferKHR\0clCommandNDRangeKernelKHR";

struct QueueRecordingFunctions {
  cl_recording (*create)(cl_command_queue, cl_int*) noexcept;
  cl_int (*end)(cl_recording) noexcept;
  cl_int (*release)(cl_recording) noexcept;
  /// Between the recording and the events: arguments, offsets, global and local sizes that differ from those
  /// recorded, each after their number.
  cl_int (*enqueue)(cl_command_queue, cl_recording, size_t, const void*, size_t, const void*, size_t,
                    const void*, size_t, const void*, cl_uint, const cl_event*, cl_event*) noexcept;
};
constexpr char kQueueRecordingNames[] =
    "clNewRecordingQCOM\0clEndRecordingQCOM\0clReleaseRecordingQCOM\0clEnqueueRecordingQCOM";

/// Fills `functions` with those of the names, in their order. False where one is missing. Some of Qualcomm's
/// libraries export functions of extensions that they do not find by name.
template <class Functions>
bool resolve(Context& context, const char* names, Functions& functions) {
  void* addresses[sizeof functions / sizeof(void*)];
  for (void*& address : addresses) {
    address = api().clGetExtensionFunctionAddressForPlatform(context.facts().platform, names);
    if (address == nullptr) address = exported_function(names);
    if (address == nullptr) return false;
    names += std::strlen(names) + 1;
  }
  std::memcpy(&functions, addresses, sizeof functions);
  return true;
}

void check_replay(cl_int status) {
  check(status, "replay of launches", "the option command_buffer turns it off");
}

class CommandBuffer final : public gpu::Recording {
 public:
  explicit CommandBuffer(Context& context) {
    cl_command_queue const queue = context.queue().get();
    cl_int status = CL_SUCCESS;
    if (resolve(context, kCommandBufferNames, functions_))
      buffer_ = functions_.create(1, &queue, nullptr, &status);
  }
  ~CommandBuffer() override {
    if (is_usable()) functions_.release(buffer_);
  }
  bool is_usable() const { return buffer_ != nullptr; }

  bool add(const gpu::Kernel& kernel, const gpu::WorkSize& size) override {
    return functions_.add_kernel(buffer_, nullptr, nullptr, object_of(kernel), size.dimensions, nullptr,
                                 size.global, size.local, 0, nullptr, nullptr, nullptr) == CL_SUCCESS;
  }
  bool end() override { return functions_.finalize(buffer_) == CL_SUCCESS; }
  void enqueue() override { check_replay(functions_.enqueue(0, nullptr, buffer_, 0, nullptr, nullptr)); }

 private:
  CommandBufferFunctions functions_;
  cl_command_buffer buffer_ = nullptr;
};

/// Of as many recordings as a device needs: each holds a limited number of kernels.
class QueueRecordings final : public gpu::Recording {
 public:
  explicit QueueRecordings(Context& context) : to_(context.queue().get()) {
    const cl_device_id device = context.facts().id;
    cl_int status = CL_SUCCESS;
    if (!resolve(context, kQueueRecordingNames, functions_)) return;
    if (api().clGetDeviceInfo(device, CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE, sizeof max_kernels_, &max_kernels_,
                              nullptr) != 0)
      return;
    queue_ = Handle<cl_command_queue>(
        api().clCreateCommandQueue(context.get(), device, CL_QUEUE_RECORDABLE_QCOM, &status));
    if (queue_ || api().clCreateCommandQueueWithProperties == nullptr) return;
    const cl_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_RECORDABLE_QCOM, 0};
    queue_ = Handle<cl_command_queue>(
        api().clCreateCommandQueueWithProperties(context.get(), device, properties, &status));
  }
  ~QueueRecordings() override {
    for (cl_recording const recording : recordings_) functions_.release(recording);
  }
  bool is_usable() const { return max_kernels_ > 0 && queue_; }

  bool add(const gpu::Kernel& kernel, const gpu::WorkSize& size) override {
    if (kernels_++ % max_kernels_ == 0) {
      if (!end()) return false;
      cl_int status = CL_SUCCESS;
      cl_recording const recording = functions_.create(queue_.get(), &status);
      if (status != CL_SUCCESS) return false;
      recordings_.push_back(recording);
    }
    return api().clEnqueueNDRangeKernel(queue_.get(), object_of(kernel), size.dimensions, nullptr,
                                        size.global, size.local, 0, nullptr, nullptr) == CL_SUCCESS;
  }
  bool end() override { return recordings_.empty() || functions_.end(recordings_.back()) == CL_SUCCESS; }
  void enqueue() override {
    for (cl_recording const recording : recordings_)
      check_replay(functions_.enqueue(to_, recording, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0,
                                      nullptr, nullptr));
  }

 private:
  QueueRecordingFunctions functions_;
  cl_command_queue to_;
  cl_uint max_kernels_ = 0, kernels_ = 0;
  Handle<cl_command_queue> queue_;  // records what is enqueued, and runs nothing
  std::vector<cl_recording> recordings_;
};

template <class Made>
std::unique_ptr<gpu::Recording> usable(Context& context) {
  auto made = std::make_unique<Made>(context);
  if (!made->is_usable()) return nullptr;
  return made;
}

}  // namespace

std::unique_ptr<gpu::Recording> Context::new_recording() {
  if (device_.has_command_buffer) return usable<CommandBuffer>(*this);
  if (device_.has_recordable_queue) return usable<QueueRecordings>(*this);
  return nullptr;
}

}  // namespace phonebit::engine::opencl
