// Kernels that a device is told once and then replays.
#pragma once

#include <memory>

#include "opencl/context.h"

namespace phonebit::engine::opencl {

/// Kernels with their arguments as they were when they were added, replayed in that order on the context's queue.
/// The functions return a status, as OpenCL's do.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual cl_int add(cl_kernel kernel, cl_uint dimensions, const size_t* global, const size_t* local) = 0;
  /// Nothing can be added afterwards.
  virtual cl_int end() = 0;
  /// Enqueues all kernels. What was enqueued before must be done.
  virtual cl_int enqueue() = 0;
};

/// A command buffer (cl_khr_command_buffer) or recordings of an Adreno (cl_qcom_recordable_queues). Null where
/// the device has neither or its driver refuses. The context must outlive it.
std::unique_ptr<Recording> new_recording(const Context& context);

}  // namespace phonebit::engine::opencl
