#include "opencl/handle.h"

#include "opencl/cl_functions.h"
#include "opencl/memory.h"

namespace phonebit::engine::opencl {

// Whoever holds an object has loaded the library, so api() does not throw here. What a release returns helps
// nobody.
void release(cl_context object) noexcept { api().clReleaseContext(object); }
void release(cl_command_queue object) noexcept { api().clReleaseCommandQueue(object); }
void release(cl_mem object) noexcept { api().clReleaseMemObject(object); }
void release(cl_program object) noexcept { api().clReleaseProgram(object); }
void release(cl_kernel object) noexcept { api().clReleaseKernel(object); }
void release(cl_event object) noexcept { api().clReleaseEvent(object); }

void retain(cl_context object) { check(api().clRetainContext(object), "clRetainContext"); }
void retain(cl_command_queue object) { check(api().clRetainCommandQueue(object), "clRetainCommandQueue"); }

/// The buffer goes before what it lies over.
Memory::~Memory() {
  owned_ = Handle<cl_mem>();
  if (shared_ != nullptr) api().clSVMFree(context_, shared_);
}

}  // namespace phonebit::engine::opencl
