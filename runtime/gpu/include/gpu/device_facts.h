// What a device can do and what to call it, whichever API reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace phonebit::engine::gpu {

/// Facts about one device, read once.
struct DeviceFacts {
  const char* api;  ///< "opencl"
  std::string name, vendor_name, platform_name;
  std::string version;  ///< "OpenCL 3.0 ..."
  std::string driver_version;
  std::string extensions;
  /// Keys of the tuning table: vendor "nvidia", "qualcomm", "arm", "intel", "amd", "apple", "pocl", "mesa" or
  /// "unknown"; family "hopper", "adreno6xx", "valhall", ... or "unknown".
  std::string vendor, family;
  bool is_gpu;
  int compute_units, clock_mhz;
  size_t max_work_group_size;
  size_t base_align_bytes;  ///< of sub-buffers
  uint64_t global_bytes, max_buffer_bytes, local_bytes;
  bool has_images;
  size_t image2d_max_width, image2d_max_height;
  bool has_unified_memory;    ///< shares memory with the host
  bool has_half;              ///< cl_khr_fp16
  bool has_fma;               ///< CL_FP_FMA for float
  bool has_exact_division;    ///< CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
  bool has_command_buffer;    ///< cl_khr_command_buffer, usable with in-order queues
  bool has_recordable_queue;  ///< cl_qcom_recordable_queues
  /// Whether several parts of one buffer may overlap; NVIDIA's driver crashes when such are released (seen:
  /// 580.159).
  bool has_overlapping_parts;
  /// Programs are modules that the library has: their epilogues take all arguments that there are, and values are
  /// floats.
  bool takes_modules;
  bool keeps_programs;  ///< the driver has a cache of its own of what it compiles
  bool has_svm_coarse, has_svm_fine, has_svm_atomics;
  bool has_host_events;       ///< Device::new_host_event
  bool has_performance_hint;  ///< cl_qcom_perf_hint
  bool has_throttle_hint;     ///< cl_khr_throttle_hints

  /// Identifies device and driver in caches and tables: "<name> | <platform> | <driver>".
  std::string key() const;
};

/// What follows from a device's names, versions and is_gpu; `compute_capability`: NVIDIA's, 10 * major + minor, 0
/// elsewhere.
std::string vendor_of(const DeviceFacts& device);
std::string family_of(const DeviceFacts& device, int compute_capability);

}  // namespace phonebit::engine::gpu
