// What a loaded network tells of itself.
#pragma once

#include <cstddef>

#include "types/options.h"

namespace phonebit::engine {

/// Memory in bytes.
struct MemoryInfo {
  size_t arena_bytes;        ///< activations of one image
  size_t lower_bound_bytes;  ///< the minimum that any placement of them needs
  size_t scratch_bytes;      ///< padded or re-coded inputs, shared by all layers
  size_t weight_bytes;       ///< weights as the kernels like them
  size_t file_bytes;         ///< of the file: a copy, or shared where it is used in place
};

/// How a network came up on a GPU.
struct StartupInfo {
  int programs_built = 0, programs_loaded = 0, cache_entries_rejected = 0, self_tests_run = 0;
  double build_ms = 0.0;
  bool uses_command_buffer = false;
};

/// How a CPU and a GPU work together in a loaded network.
struct CoexecInfo {
  Sharing sharing;
  Synchronization synchronization;
  bool is_on_cpu_alone;  ///< the GPU has failed, or the plan leaves it out, or the CPU won the auto-selection
  bool is_on_gpu_alone;  ///< the GPU won the auto-selection
  bool is_on_trial;      ///< passes take turns: the fastest is not known yet
  /// Milliseconds of an image, medians of the auto-selection; 0 before its end, and of what took no part.
  double plan_ms, cpu_ms, gpu_ms;
};

}  // namespace phonebit::engine
