// OpenCL without its headers and without linking to it: declarations of what the engine uses, and the
// library's functions resolved at run time.
//
// Names, types and numbers are those of the OpenCL 3.0 specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace phonebit::engine::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_properties = cl_ulong;

using cl_platform_id = struct _cl_platform_id*;
using cl_device_id = struct _cl_device_id*;
using cl_context = struct _cl_context*;
using cl_command_queue = struct _cl_command_queue*;
using cl_mem = struct _cl_mem*;
using cl_program = struct _cl_program*;
using cl_kernel = struct _cl_kernel*;
using cl_event = struct _cl_event*;

/// The function table; every pointer is set except those marked optional.
struct Api;

/// The loaded library. Loads it on first use: the one that PHONEBIT_OPENCL_LIBRARY names and no other (a name
/// that does not exist turns OpenCL off), else that of use_library(), else the usual names and Android's
/// vendor paths. Throws Error(device) saying what was tried when there is none.
const Api& api();
/// The library to try first, for Python, where pyopencl brings a loader of its own. Ignored once one is
/// loaded. Empty: the default search.
void use_library(const std::string& path);
/// Whether api() would succeed; never throws.
bool is_available();
/// A function that the loaded library exports; null where it does not.
void* exported_function(const char* name);
/// Path or name of the loaded library.
const std::string& library_path();

/// "CL_OUT_OF_RESOURCES" and the like; "CL error -9999" for numbers that the specification does not know.
std::string name_of_status(cl_int status);

/// Throws Error(device, "clFoo: CL_BAR (-5); <what>") unless status is CL_SUCCESS.
void check(cl_int status, const char* function, const char* what = "");

}  // namespace phonebit::engine::opencl
