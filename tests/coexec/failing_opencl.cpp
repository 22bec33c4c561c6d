// An OpenCL library that passes everything on to the real one, which it is linked to, but launches no more
// kernels once those allowed by fail_after() are used up: as a device does that was lost.
#include <dlfcn.h>

#include "opencl/cl_functions.h"

using namespace phonebit::engine::opencl;

static int launches_left = -1;  // -1: no limit

extern "C" void fail_after(int launches) { launches_left = launches; }

extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t* offset, const size_t* global, const size_t* local,
                                         cl_uint waits, const cl_event* wait_list, cl_event* event) {
  constexpr cl_int kDeviceNotAvailable = -2;
  static const auto real =
      reinterpret_cast<decltype(Api::clEnqueueNDRangeKernel)>(dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel"));
  if (launches_left == 0) return kDeviceNotAvailable;
  if (launches_left > 0) --launches_left;
  return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}
