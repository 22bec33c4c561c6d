#include "opencl/cl_api.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

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

/// Loads one library; on failure appends to `problem`. It is never closed: drivers leave threads behind.
bool load(const std::string& path, Library& into) {
  std::string problem;
  void* const handle = system::load_library(path.c_str(), problem);
  if (handle == nullptr) {
    into.problem += "\n  " + path + ": " + problem;
    return false;
  }
  Api functions;
  if (const char* const missing = resolve(handle, functions)) {
    into.problem += "\n  " + path + ": has no function " + missing + "; OpenCL 1.2 is needed";
    system::unload_library(handle);
    return false;
  }
  into.functions = functions;
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

const std::string& library_path() {
  api();
  return library().path;
}

std::string name_of_status(cl_int status) {
  static const std::pair<cl_int, const char*> names[] = {
      {0, "CL_SUCCESS"},
      {-1, "CL_DEVICE_NOT_FOUND"},
      {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-3, "CL_COMPILER_NOT_AVAILABLE"},
      {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {-5, "CL_OUT_OF_RESOURCES"},
      {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
      {-8, "CL_MEM_COPY_OVERLAP"},
      {-9, "CL_IMAGE_FORMAT_MISMATCH"},
      {-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"},
      {-12, "CL_MAP_FAILURE"},
      {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {-15, "CL_COMPILE_PROGRAM_FAILURE"},
      {-16, "CL_LINKER_NOT_AVAILABLE"},
      {-17, "CL_LINK_PROGRAM_FAILURE"},
      {-18, "CL_DEVICE_PARTITION_FAILED"},
      {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
      {-30, "CL_INVALID_VALUE"},
      {-31, "CL_INVALID_DEVICE_TYPE"},
      {-32, "CL_INVALID_PLATFORM"},
      {-33, "CL_INVALID_DEVICE"},
      {-34, "CL_INVALID_CONTEXT"},
      {-35, "CL_INVALID_QUEUE_PROPERTIES"},
      {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-37, "CL_INVALID_HOST_PTR"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
      {-40, "CL_INVALID_IMAGE_SIZE"},
      {-41, "CL_INVALID_SAMPLER"},
      {-42, "CL_INVALID_BINARY"},
      {-43, "CL_INVALID_BUILD_OPTIONS"},
      {-44, "CL_INVALID_PROGRAM"},
      {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
      {-46, "CL_INVALID_KERNEL_NAME"},
      {-47, "CL_INVALID_KERNEL_DEFINITION"},
      {-48, "CL_INVALID_KERNEL"},
      {-49, "CL_INVALID_ARG_INDEX"},
      {-50, "CL_INVALID_ARG_VALUE"},
      {-51, "CL_INVALID_ARG_SIZE"},
      {-52, "CL_INVALID_KERNEL_ARGS"},
      {-53, "CL_INVALID_WORK_DIMENSION"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-56, "CL_INVALID_GLOBAL_OFFSET"},
      {-57, "CL_INVALID_EVENT_WAIT_LIST"},
      {-58, "CL_INVALID_EVENT"},
      {-59, "CL_INVALID_OPERATION"},
      {-60, "CL_INVALID_GL_OBJECT"},
      {-61, "CL_INVALID_BUFFER_SIZE"},
      {-62, "CL_INVALID_MIP_LEVEL"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
      {-64, "CL_INVALID_PROPERTY"},
      {-65, "CL_INVALID_IMAGE_DESCRIPTOR"},
      {-66, "CL_INVALID_COMPILER_OPTIONS"},
      {-67, "CL_INVALID_LINKER_OPTIONS"},
      {-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
      {-69, "CL_INVALID_PIPE_SIZE"},
      {-70, "CL_INVALID_DEVICE_QUEUE"},
      {-71, "CL_INVALID_SPEC_ID"},
      {-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
      {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
      {-1138, "CL_INVALID_COMMAND_BUFFER_KHR"},
      {-1139, "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR"},
      {-1140, "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR"},
  };
  for (const auto& [number, name] : names) {
    if (number == status) return name;
  }
  return "CL error " + std::to_string(status);
}

void check(cl_int status, const char* function, const char* what) {
  if (status == CL_SUCCESS) return;
  fail(ErrorCode::device, "%s: %s (%d)%s%s", function, name_of_status(status).c_str(), status,
       *what == '\0' ? "" : "; ", what);
}

}  // namespace phonebit::engine::opencl
