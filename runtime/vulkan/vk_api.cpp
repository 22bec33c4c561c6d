#include "vulkan/vk_api.h"

#include <cstdlib>
#include <cstring>

#include "system/calls.h"
#include "types/fail.h"

namespace phonebit::engine::vulkan {
namespace {

const char* const default_names[] = {
#if defined(_WIN32)
    "vulkan-1.dll",
#elif defined(__APPLE__)
    "libvulkan.1.dylib",
    "libMoltenVK.dylib",
#else
    "libvulkan.so.1",
    "libvulkan.so",
#endif
};

using FindInstanceFunction = VoidFunction(PHONEBIT_VK_CALL*)(VkInstance, const char*);

#define PHONEBIT_VK_NAME(RESULT, NAME, PARAMETERS) #NAME "\0"

/// Fills a table of functions from their names, one after the other. Returns the first that is missing, or null.
template <class Table, class Find>
const char* fill(Table& table, const char* names, const Find& find) {
  VoidFunction addresses[sizeof table / sizeof(VoidFunction)];
  for (VoidFunction& address : addresses) {
    address = find(names);
    if (address == nullptr) return names;
    names += std::strlen(names) + 1;
  }
  std::memcpy(&table, addresses, sizeof table);
  return nullptr;
}

/// The function that finds all others; null and a reason in `problem` where no library has it.
FindInstanceFunction load_library(std::string& problem) {
  const char* const named = std::getenv("PHONEBIT_VULKAN_LIBRARY");
  const bool is_named = named != nullptr && *named != '\0';
  for (const char* const name : default_names) {
    const char* const path = is_named ? named : name;
    std::string reason;
    void* const handle = system::load_library(path, reason);
    if (handle != nullptr) {
      const auto find =
          reinterpret_cast<FindInstanceFunction>(system::find_symbol(handle, "vkGetInstanceProcAddr"));
      if (find != nullptr) return find;
      reason = "has no function vkGetInstanceProcAddr";
    }
    problem += format_text("\n  %s: %s", path, reason.c_str());
    if (is_named) break;
  }
  return nullptr;
}

Instance create_instance() {
  std::string problem =
      "no Vulkan library could be loaded; install a Vulkan driver, or name the library in "
      "PHONEBIT_VULKAN_LIBRARY. "
      "Tried:";
  const FindInstanceFunction find = load_library(problem);
  if (find == nullptr) throw Error(ErrorCode::device, problem);
  const auto create =
      reinterpret_cast<VkResult(PHONEBIT_VK_CALL*)(const VkInstanceCreateInfo*, const void*, VkInstance*)>(
          find(nullptr, "vkCreateInstance"));
  if (create == nullptr) fail(ErrorCode::device, "Vulkan has no function vkCreateInstance");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = application.pEngineName = "PhoneBit";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  Instance made{};
  check(create(&info, nullptr, &made.handle), "vkCreateInstance", "Vulkan 1.1 is needed");
  const char* const missing = fill(made.functions, PHONEBIT_VK_INSTANCE_FUNCTIONS(PHONEBIT_VK_NAME),
                                   [&](const char* name) { return find(made.handle, name); });
  if (missing != nullptr)
    fail(ErrorCode::device, "Vulkan has no function %s; version 1.1 is needed", missing);
  return made;
}

}  // namespace

const Instance& instance() {
  struct Attempt {
    Instance made{};
    std::string problem;
    Attempt() {
      try {
        made = create_instance();
      } catch (const Error& error) {
        problem = error.what();
      }
    }
  };
  // A failure is remembered: networks are loaded more often than drivers are installed.
  static const Attempt* const attempt = new Attempt;
  if (!attempt->problem.empty()) throw Error(ErrorCode::device, attempt->problem);
  return attempt->made;
}

void resolve(VkDevice device, DeviceApi& functions) {
  const char* const missing =
      fill(functions, PHONEBIT_VK_DEVICE_FUNCTIONS(PHONEBIT_VK_NAME),
           [&](const char* name) { return instance().functions.vkGetDeviceProcAddr(device, name); });
  if (missing != nullptr) fail(ErrorCode::device, "the Vulkan driver has no function %s", missing);
}

std::string name_of_result(VkResult result) {
  static const char* const names[] = {"OUT_OF_HOST_MEMORY",
                                      "OUT_OF_DEVICE_MEMORY",
                                      "INITIALIZATION_FAILED",
                                      "DEVICE_LOST",
                                      "MEMORY_MAP_FAILED",
                                      "LAYER_NOT_PRESENT",
                                      "EXTENSION_NOT_PRESENT",
                                      "FEATURE_NOT_PRESENT",
                                      "INCOMPATIBLE_DRIVER",
                                      "TOO_MANY_OBJECTS",
                                      "FORMAT_NOT_SUPPORTED",
                                      "FRAGMENTED_POOL",
                                      "UNKNOWN"};
  if (result < 0 && result >= -13) return std::string("VK_ERROR_") + names[-result - 1];
  return format_text("VkResult %d", result);
}

void check(VkResult result, const char* function, const char* what) {
  if (result >= 0) return;
  fail(ErrorCode::device, "%s: %s (%d)%s%s", function, name_of_result(result).c_str(), result,
       *what != '\0' ? "; " : "", what);
}

}  // namespace phonebit::engine::vulkan
