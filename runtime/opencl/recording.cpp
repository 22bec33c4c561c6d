#include "opencl/recording.h"

#include <cstring>
#include <vector>

#include "opencl/cl_functions.h"

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
bool resolve(const Context& context, const char* names, Functions& functions) {
  void* addresses[sizeof functions / sizeof(void*)];
  for (void*& address : addresses) {
    address = api().clGetExtensionFunctionAddressForPlatform(context.device().platform, names);
    if (address == nullptr) address = exported_function(names);
    if (address == nullptr) return false;
    names += std::strlen(names) + 1;
  }
  std::memcpy(&functions, addresses, sizeof functions);
  return true;
}

class CommandBuffer final : public Recording {
 public:
  explicit CommandBuffer(const Context& context) {
    cl_command_queue const queue = context.queue();
    cl_int status = CL_SUCCESS;
    if (resolve(context, kCommandBufferNames, functions_))
      buffer_ = functions_.create(1, &queue, nullptr, &status);
  }
  ~CommandBuffer() override {
    if (is_usable()) functions_.release(buffer_);
  }
  bool is_usable() const { return buffer_ != nullptr; }

  cl_int add(cl_kernel kernel, cl_uint dimensions, const size_t* global, const size_t* local) override {
    return functions_.add_kernel(buffer_, nullptr, nullptr, kernel, dimensions, nullptr, global, local, 0,
                                 nullptr, nullptr, nullptr);
  }
  cl_int end() override { return functions_.finalize(buffer_); }
  cl_int enqueue() override { return functions_.enqueue(0, nullptr, buffer_, 0, nullptr, nullptr); }

 private:
  CommandBufferFunctions functions_;
  cl_command_buffer buffer_ = nullptr;
};

/// Of as many recordings as a device needs: each holds a limited number of kernels.
class QueueRecordings final : public Recording {
 public:
  explicit QueueRecordings(const Context& context) : to_(context.queue()) {
    const cl_device_id device = context.device().id;
    cl_int status = CL_SUCCESS;
    if (!resolve(context, kQueueRecordingNames, functions_)) return;
    if (api().clGetDeviceInfo(device, CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE, sizeof most_, &most_, nullptr) !=
        0)
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
  bool is_usable() const { return most_ > 0 && queue_; }

  cl_int add(cl_kernel kernel, cl_uint dimensions, const size_t* global, const size_t* local) override {
    if (kernels_++ % most_ == 0) {
      cl_int status = end();
      if (status != CL_SUCCESS) return status;
      cl_recording const recording = functions_.create(queue_.get(), &status);
      if (status != CL_SUCCESS) return status;
      recordings_.push_back(recording);
    }
    return api().clEnqueueNDRangeKernel(queue_.get(), kernel, dimensions, nullptr, global, local, 0, nullptr,
                                        nullptr);
  }
  cl_int end() override { return recordings_.empty() ? CL_SUCCESS : functions_.end(recordings_.back()); }
  cl_int enqueue() override {
    cl_int status = CL_SUCCESS;
    for (cl_recording const recording : recordings_)
      if (status == CL_SUCCESS)
        status = functions_.enqueue(to_, recording, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0,
                                    nullptr, nullptr);
    return status;
  }

 private:
  QueueRecordingFunctions functions_;
  cl_command_queue to_;
  cl_uint most_ = 0, kernels_ = 0;
  Handle<cl_command_queue> queue_;  // records what is enqueued, and runs nothing
  std::vector<cl_recording> recordings_;
};

template <class Made>
std::unique_ptr<Recording> usable(const Context& context) {
  auto made = std::make_unique<Made>(context);
  if (!made->is_usable()) return nullptr;
  return made;
}

}  // namespace

std::unique_ptr<Recording> new_recording(const Context& context) {
  if (context.device().has_command_buffer) return usable<CommandBuffer>(context);
  if (context.device().has_recordable_queue) return usable<QueueRecordings>(context);
  return nullptr;
}

}  // namespace phonebit::engine::opencl
