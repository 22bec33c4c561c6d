#include "opencl/cl_api.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/text_fields.h"
#include "opencl/cl_functions.h"
#include "system/calls.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

/// What is loaded. Never destroyed: other static objects may still release OpenCL objects at exit.
struct Library {
  std::mutex mutex;
  std::atomic<const Api*> loaded{nullptr};
  Api functions;
  void* handle = nullptr;
  std::string requested, path;
  std::string problem;  // of the last attempt; empty before the first
};

Library& library() {
  static Library* const instance = new Library;
  return *instance;
}

/// Names of the loader first, then, where there is none (Android before version 12, or without a loader), of
/// the drivers themselves.
const char* const default_names[] = {
#if defined(_WIN32)
    "OpenCL.dll",
#elif defined(__APPLE__)
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#else
    "libOpenCL.so.1",
    "libOpenCL.so",
#endif
#if defined(__ANDROID__)
#if defined(__LP64__)
    "/vendor/lib64/libOpenCL.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/system/lib64/libOpenCL.so",
    "/vendor/lib64/egl/libGLES_mali.so",
    "/system/vendor/lib64/egl/libGLES_mali.so",
    "/vendor/lib64/libPVROCL.so",
#else
    "/vendor/lib/libOpenCL.so",
    "/system/vendor/lib/libOpenCL.so",
    "/system/lib/libOpenCL.so",
    "/vendor/lib/egl/libGLES_mali.so",
    "/system/vendor/lib/egl/libGLES_mali.so",
    "/vendor/lib/libPVROCL.so",
#endif
    "libPVROCL.so",
    "libGLES_mali.so",
    "libmali.so",
    "libOpenCL-pixel.so",
    "libOpenCL-car.so",
#endif
};

using FindFunction = void* (*)(const char* name);

/// libOpenCL-pixel.so of Google's Tensor exports no function of OpenCL, but one that finds them once it was
/// told to. Null for other libraries.
FindFunction finder(void* handle) {
  const auto enable = reinterpret_cast<void (*)()>(system::find_symbol(handle, "enableOpenCL"));
  const auto find = reinterpret_cast<FindFunction>(system::find_symbol(handle, "loadOpenCLPointer"));
  if (enable == nullptr || find == nullptr) return nullptr;
  enable();
  return find;
}

/// Fills `functions` from an open library; the name of the first required function that is missing, else
/// null. One text and a loop: a call for each function would take 1 kB more of a phone's library.
const char* resolve(void* handle, Api& functions) {
#define PHONEBIT_CL_OPTIONAL(RESULT, NAME, PARAMETERS) "?" #NAME "\0"
#define PHONEBIT_CL_REQUIRED(RESULT, NAME, PARAMETERS) "!" #NAME "\0"
  const char* name = PHONEBIT_CL_FUNCTIONS(PHONEBIT_CL_REQUIRED, PHONEBIT_CL_OPTIONAL);
#undef PHONEBIT_CL_REQUIRED
#undef PHONEBIT_CL_OPTIONAL
  void* addresses[sizeof functions / sizeof(void*)];  // in the order of the names
  const FindFunction find = finder(handle);
  for (void*& address : addresses) {
    const bool is_required = *name++ == '!';
    address = find != nullptr ? find(name) : system::find_symbol(handle, name);
    if (address == nullptr && is_required) return name;
    name += std::strlen(name) + 1;
  }
  std::memcpy(&functions, addresses, sizeof functions);
  return nullptr;
}

/// Loads one library; on failure appends to `problem`. It is never closed: drivers leave threads running.
bool load(const std::string& path, Library& into) {
  std::string problem;
  void* const handle = system::load_library(path.c_str(), problem);
  if (handle == nullptr) {
    into.problem += format_text("\n  %s: %s", path.c_str(), problem.c_str());
    return false;
  }
  Api functions;
  if (const char* const missing = resolve(handle, functions)) {
    into.problem += format_text("\n  %s: has no function %s; OpenCL 1.2 is needed", path.c_str(), missing);
    system::unload_library(handle);
    return false;
  }
  into.functions = functions;
  into.handle = handle;
  into.path = path;
  into.loaded.store(&into.functions, std::memory_order_release);
  return true;
}

/// Tries everything; with the mutex held.
void load_any(Library& into) {
  into.problem =
      "no OpenCL library could be loaded; install an OpenCL driver, or name the library in "
      "PHONEBIT_OPENCL_LIBRARY. Tried:";
  const char* const named = std::getenv("PHONEBIT_OPENCL_LIBRARY");
  if (named != nullptr && *named != '\0') {
    load(named, into);
    return;
  }
  if (!into.requested.empty() && load(into.requested, into)) return;
  for (const char* const name : default_names) {
    if (load(name, into)) return;
  }
}

}  // namespace

const Api& api() {
  Library& shared = library();
  if (const Api* const functions = shared.loaded.load(std::memory_order_acquire)) return *functions;
  const std::lock_guard<std::mutex> lock(shared.mutex);
  // A failure is remembered: networks are loaded more often than drivers are installed.
  if (shared.loaded.load() == nullptr && shared.problem.empty()) load_any(shared);
  if (const Api* const functions = shared.loaded.load()) return *functions;
  throw Error(ErrorCode::device, shared.problem);
}

void use_library(const std::string& path) {
  Library& shared = library();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  if (shared.loaded.load() != nullptr) return;
  shared.requested = path;
  shared.problem.clear();
}

bool is_available() {
  try {
    api();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void* exported_function(const char* name) { return system::find_symbol(library().handle, name); }

const std::string& library_path() {
  api();
  return library().path;
}

std::string name_of_status(cl_int status) {
  // One text per run of numbers: a table of addresses would take 2 kB of a phone's library.
  struct Run {
    cl_int first, last;
    const char* names;
  };
  static const Run runs[] = {
      {0, -19,
       R"(SUCCESS DEVICE_NOT_FOUND DEVICE_NOT_AVAILABLE COMPILER_NOT_AVAILABLE MEM_OBJECT_ALLOCATION_FAILURE
OUT_OF_RESOURCES OUT_OF_HOST_MEMORY PROFILING_INFO_NOT_AVAILABLE MEM_COPY_OVERLAP IMAGE_FORMAT_MISMATCH
IMAGE_FORMAT_NOT_SUPPORTED BUILD_PROGRAM_FAILURE MAP_FAILURE MISALIGNED_SUB_BUFFER_OFFSET
EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST COMPILE_PROGRAM_FAILURE LINKER_NOT_AVAILABLE
LINK_PROGRAM_FAILURE DEVICE_PARTITION_FAILED KERNEL_ARG_INFO_NOT_AVAILABLE)"},
      {-30, -72, R"(INVALID_VALUE INVALID_DEVICE_TYPE INVALID_PLATFORM INVALID_DEVICE INVALID_CONTEXT
INVALID_QUEUE_PROPERTIES INVALID_COMMAND_QUEUE INVALID_HOST_PTR INVALID_MEM_OBJECT
INVALID_IMAGE_FORMAT_DESCRIPTOR INVALID_IMAGE_SIZE INVALID_SAMPLER INVALID_BINARY INVALID_BUILD_OPTIONS
INVALID_PROGRAM INVALID_PROGRAM_EXECUTABLE INVALID_KERNEL_NAME INVALID_KERNEL_DEFINITION INVALID_KERNEL
INVALID_ARG_INDEX INVALID_ARG_VALUE INVALID_ARG_SIZE INVALID_KERNEL_ARGS INVALID_WORK_DIMENSION
INVALID_WORK_GROUP_SIZE INVALID_WORK_ITEM_SIZE INVALID_GLOBAL_OFFSET INVALID_EVENT_WAIT_LIST
INVALID_EVENT INVALID_OPERATION INVALID_GL_OBJECT INVALID_BUFFER_SIZE INVALID_MIP_LEVEL
INVALID_GLOBAL_WORK_SIZE INVALID_PROPERTY INVALID_IMAGE_DESCRIPTOR INVALID_COMPILER_OPTIONS
INVALID_LINKER_OPTIONS INVALID_DEVICE_PARTITION_COUNT INVALID_PIPE_SIZE INVALID_DEVICE_QUEUE
INVALID_SPEC_ID MAX_SIZE_RESTRICTION_EXCEEDED)"},
      {-1001, -1001, "PLATFORM_NOT_FOUND_KHR"},
      {-1138, -1140,
       R"(INVALID_COMMAND_BUFFER_KHR INVALID_SYNC_POINT_WAIT_LIST_KHR INCOMPATIBLE_COMMAND_QUEUE_KHR
)"},
  };
  for (const Run& run : runs) {
    if (status > run.first || status < run.last) continue;
    std::string_view names = run.names;
    std::string name;
    for (cl_int at = run.first; at >= status; --at) gpu::take_word(names, name);
    return "CL_" + name;
  }
  return format_text("CL error %d", status);
}

void check(cl_int status, const char* function, const char* what) {
  if (status == CL_SUCCESS) return;
  fail(ErrorCode::device, "%s: %s (%d)%s%s", function, name_of_status(status).c_str(), status,
       *what == '\0' ? "" : "; ", what);
}

}  // namespace phonebit::engine::opencl
