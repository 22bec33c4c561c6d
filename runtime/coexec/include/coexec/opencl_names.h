// OpenCL's names, which runtime/opencl declares in its namespace.
#pragma once

#include "opencl/cl_functions.h"
#include "opencl/handle.h"

namespace phonebit::engine::coexec {

using opencl::api;
using opencl::check;
using opencl::cl_bitfield;
using opencl::cl_command_queue;
using opencl::CL_COMPLETE;
using opencl::cl_event;
using opencl::CL_EVENT_COMMAND_EXECUTION_STATUS;
using opencl::cl_int;
using opencl::cl_kernel;
using opencl::CL_MAP_READ;
using opencl::CL_MAP_WRITE_INVALIDATE_REGION;
using opencl::cl_mem;
using opencl::CL_QUEUED;
using opencl::cl_uint;
using opencl::Handle;

}  // namespace phonebit::engine::coexec
