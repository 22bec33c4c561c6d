// What drivers tell about their devices.
#include <algorithm>

#include "opencl/cl_functions.h"
#include "opencl/context.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

/// A text about a device or a platform.
template <class Object, class Get>
std::string text_of(Get get, const char* function, Object object, cl_uint name) {
  size_t bytes = 0;
  check(get(object, name, 0, nullptr, &bytes), function);
  std::string text(bytes, '\0');
  if (bytes > 0) check(get(object, name, bytes, text.data(), nullptr), function);
  text.resize(std::min(text.find('\0'), text.size()));
  // Some drivers pad names with blanks.
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// False where the device does not know the name, which older versions and other vendors do not.
bool read_info(cl_device_id device, cl_uint name, size_t bytes, void* value, bool is_optional) {
  const cl_int status = api().clGetDeviceInfo(device, name, bytes, value, nullptr);
  if (!is_optional) check(status, "clGetDeviceInfo");
  return status == CL_SUCCESS;
}

template <class T>
T device_info(cl_device_id device, cl_uint name) {
  T value{};
  read_info(device, name, sizeof value, &value, false);
  return value;
}

/// 0 where the device does not know it.
template <class T>
T optional_info(cl_device_id device, cl_uint name) {
  T value{};
  return read_info(device, name, sizeof value, &value, true) ? value : T{};
}

bool has_extension(const std::string& extensions, const std::string& name) {
  return (" " + extensions + " ").find(" " + name + " ") != std::string::npos;
}

/// An in-order queue must do, see Context.
bool has_usable_command_buffer(const ClDevice& device) {
  return has_extension(device.extensions, "cl_khr_command_buffer") &&
         optional_info<cl_bitfield>(device.id, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR) == 0;
}

void describe_limits(ClDevice& device) {
  const cl_device_id id = device.id;
  device.compute_units = static_cast<int>(device_info<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  device.clock_mhz = static_cast<int>(optional_info<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY));
  device.max_work_group_size = device_info<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device.base_align_bytes = std::max<size_t>(device_info<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1);
  device.global_bytes = device_info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  device.max_buffer_bytes = device_info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device.local_bytes = device_info<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  device.has_images = device_info<cl_bool>(id, CL_DEVICE_IMAGE_SUPPORT) != 0;
  device.image2d_max_width = optional_info<size_t>(id, CL_DEVICE_IMAGE2D_MAX_WIDTH);
  device.image2d_max_height = optional_info<size_t>(id, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
}

void describe_features(ClDevice& device) {
  const cl_device_id id = device.id;
  const auto floats = device_info<cl_bitfield>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  const auto svm = optional_info<cl_bitfield>(id, CL_DEVICE_SVM_CAPABILITIES);
  device.has_unified_memory = optional_info<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  device.has_half = has_extension(device.extensions, "cl_khr_fp16");
  device.has_fma = (floats & CL_FP_FMA) != 0;
  device.has_exact_division = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  device.has_command_buffer = has_usable_command_buffer(device);
  device.has_recordable_queue = has_extension(device.extensions, "cl_qcom_recordable_queues");
  device.has_svm_coarse = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  device.has_svm_fine = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  device.has_host_events = true;
  device.has_svm_atomics = (svm & CL_DEVICE_SVM_ATOMICS) != 0;
  device.has_performance_hint = has_extension(device.extensions, "cl_qcom_perf_hint");
  device.has_throttle_hint = has_extension(device.extensions, "cl_khr_throttle_hints");
}

/// Whether the engine can work with it at all: kernels are OpenCL C 1.2 in source form.
bool is_usable(const ClDevice& device) {
  return device.version.rfind("OpenCL 1.0", 0) != 0 && device.version.rfind("OpenCL 1.1", 0) != 0 &&
         optional_info<cl_bool>(device.id, CL_DEVICE_AVAILABLE) != 0 &&
         optional_info<cl_bool>(device.id, CL_DEVICE_COMPILER_AVAILABLE) != 0;
}

/// What `get` lists when it is asked for the number first; none where it fails.
template <class Id, class Get>
std::vector<Id> all_of(const Get& get) {
  cl_uint count = 0;
  if (get(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<Id> found(count);
  if (get(count, found.data(), nullptr) != CL_SUCCESS) return {};
  return found;
}

std::vector<ClDevice> find_devices() {
  std::vector<ClDevice> gpus, others, simulators;
  if (!is_available()) return {};
  for (const cl_platform_id platform : all_of<cl_platform_id>(api().clGetPlatformIDs)) {
    const auto list = [&](cl_uint room, cl_device_id* into, cl_uint* count) {
      return api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room, into, count);
    };
    for (const cl_device_id id : all_of<cl_device_id>(list)) {
      try {
        ClDevice device = describe_device(id);
        if (!is_usable(device)) continue;
        const bool is_simulator = device.platform_name.find("Oclgrind") != std::string::npos;
        (is_simulator ? simulators : device.is_gpu ? gpus : others).push_back(std::move(device));
      } catch (const Error&) {
        // A driver that cannot even describe its device; the others can.
      }
    }
  }
  for (std::vector<ClDevice>* const more : {&others, &simulators})
    for (ClDevice& device : *more) gpus.push_back(std::move(device));
  return gpus;
}

}  // namespace

const std::vector<ClDevice>& devices() {
  static const std::vector<ClDevice> found = find_devices();
  return found;
}

ClDevice describe_device(cl_device_id id) {
  ClDevice device{};
  device.api = "opencl";
  device.id = id;
  device.platform = device_info<cl_platform_id>(id, CL_DEVICE_PLATFORM);
  const auto text = [&](cl_uint name) { return text_of(api().clGetDeviceInfo, "clGetDeviceInfo", id, name); };
  device.name = text(CL_DEVICE_NAME);
  device.vendor_name = text(CL_DEVICE_VENDOR);
  device.platform_name =
      text_of(api().clGetPlatformInfo, "clGetPlatformInfo", device.platform, CL_PLATFORM_NAME);
  device.version = text(CL_DEVICE_VERSION);
  device.driver_version = text(CL_DRIVER_VERSION);
  device.extensions = text(CL_DEVICE_EXTENSIONS);
  // Simulators (Oclgrind) call themselves every type at once.
  const cl_bitfield type = device_info<cl_bitfield>(id, CL_DEVICE_TYPE);
  device.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0 && (type & CL_DEVICE_TYPE_CPU) == 0;
  int compute_capability = 0;
  if (has_extension(device.extensions, "cl_nv_device_attribute_query"))
    compute_capability =
        static_cast<int>(10 * optional_info<cl_uint>(id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV) +
                         optional_info<cl_uint>(id, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
  device.vendor = gpu::vendor_of(device);
  device.keeps_programs = device.vendor == "pocl";
  device.has_overlapping_parts = device.vendor != "nvidia";
  device.family = gpu::family_of(device, compute_capability);
  describe_limits(device);
  describe_features(device);
  return device;
}

}  // namespace phonebit::engine::opencl
