// An OpenCL library that passes everything on to the real one, which it is linked to, but launches no more
// kernels once those allowed by fail_after() are used up: as a device does that was lost.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef int (*launch_function)(void*, void*, unsigned, const size_t*, const size_t*, const size_t*, unsigned,
                               void* const*, void**);

static int launches_left = -1;  // -1: no limit

void fail_after(int launches) { launches_left = launches; }

int clEnqueueNDRangeKernel(void* queue, void* kernel, unsigned dimensions, const size_t* offset,
                           const size_t* global, const size_t* local, unsigned event_count,
                           void* const* wait_list, void** event) {
  enum { CL_DEVICE_NOT_AVAILABLE = -2 };
  static launch_function real;
  if (real == NULL) real = (launch_function)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
  if (launches_left == 0) return CL_DEVICE_NOT_AVAILABLE;
  if (launches_left > 0) --launches_left;
  return real(queue, kernel, dimensions, offset, global, local, event_count, wait_list, event);
}
