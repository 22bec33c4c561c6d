#include "opencl/objects.h"

#include "opencl/cl_functions.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {

// Code that holds an object has loaded the library, so api() does not throw here. What a release returns helps
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

void Kernel::set(unsigned position, size_t bytes, const void* value) {
  const cl_int status = api().clSetKernelArg(get(), position, bytes, value);
  if (status != CL_SUCCESS) check(status, "clSetKernelArg", format_text("argument %u", position).c_str());
}

void Kernel::bind(unsigned position, const gpu::DeviceMemory& memory) {
  const cl_mem object = object_of(memory);
  if (memory.address() == nullptr) return set(position, sizeof object, &object);
  check(api().clSetKernelArgSVMPointer(get(), position, memory.address()), "clSetKernelArgSVMPointer");
}

size_t Kernel::max_group_size() const {
  size_t result = 0;
  check(api().clGetKernelWorkGroupInfo(get(), device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof result, &result,
                                       nullptr),
        "clGetKernelWorkGroupInfo");
  return result;
}

}  // namespace phonebit::engine::opencl
