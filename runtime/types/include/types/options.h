// How a network is loaded: where it runs, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "types/plan.h"

namespace phonebit::engine {

/// Objects of a GPU's API, a caller's or a network's. A caller's are retained while a network uses them; `queue`
/// may be null; it must be in order.
struct GpuHandles {
  void* context = nullptr;  ///< OpenCL: cl_context; null: none given
  void* device = nullptr;   ///< cl_device_id
  void* queue = nullptr;    ///< cl_command_queue
};

/// How real-valued layers compute. Binary layers are exact in all.
enum class Precision {
  exact,  ///< float32; results have the bits of the CPU backend on devices with IEEE arithmetic
  f16,    ///< a GPU stores float tensors between layers as halves: half the memory traffic, and multiplies
          ///< halves where the file has f16 or i8 weights; a CPU stays exact
  fast,   ///< what suits the processor: a GPU as f16, a CPU in 8-bit integers where the file has f16 or i8
          ///< weights; each of a GPU and a CPU that work together as alone
};

/// How a CPU and a GPU that work together reach what the other one wrote. The names in options and in C, those of
/// OpenCL's means: "copy", "map", "svm".
enum class Sharing {
  automatic,  ///< shared, mapped or copied: the first that the device has
  copied,     ///< each has its own memory; regions are read and written through the queue
  mapped,  ///< zero-copy where one processor writes a tensor: memory that both reach, mapped while the CPU works
           ///< with it; else as copied
  shared,  ///< memory that is coherent for both, who write into the same tensors
};

/// How they wait for each other. The names in options and in C: "events", "user_events", "polling".
enum class Synchronization {
  automatic,  ///< polling where the device can and is no pool of threads, else in_turn
  in_turn,    ///< the GPU's next work is enqueued when the CPU has done its part
  ahead,      ///< with shared memory, work is enqueued early, after events of the host; else as in_turn
  polling,    ///< a kernel and the CPU watch each other's flag in shared memory (Fine-Grained, section 4)
};

/// Which processors the threads of a network run on.
enum class Cores {
  any,     ///< the system decides
  big,     ///< the clusters of highest capacity (threads/processor_topology.h)
  little,  ///< the cluster of lowest capacity
};

/// What matters more while a network waits between passes.
enum class Hint {
  none,
  /// Workers wait awake for up to 50 ms, longer than from one frame of a camera to the next; Android's
  /// performance hint session, where there is one (threads/performance_hint.h); a GPU runs as fast
  /// as it can, where its driver takes hints (cl_qcom_perf_hint, cl_khr_throttle_hints).
  performance,
  power,  ///< workers sleep at once; a GPU saves power, where its driver takes hints
};

struct Options {
  /// Whether the file's bytes are used where they are, without a copy: a mapping that is shared with the page
  /// cache, or the caller's memory. They must then stay unchanged as long as the network lives (replacing a
  /// file by renaming is fine): results are otherwise undefined, and a file that is cut short ends the
  /// process with SIGBUS.
  bool in_place = false;
  /// "cpu": the instruction set that PHONEBIT_CPU names, else the best of this machine; "cpu:avx2": that one;
  /// "gpu" or "gpu:1": a device in the order of gpu_devices(); "auto": the first one that is
  /// a GPU, or the CPU where there is none; "gpu+cpu" or "gpu:1+cpu:avx2": both together, as a plan
  /// says.
  std::string device = "cpu";
  /// In place of `device`, when its context is not null.
  GpuHandles handles;
  Precision precision = Precision::exact;
  /// "gpu+cpu": who computes what, without parts: everything on the GPU; absent: the file's own plan for
  /// plan_key(), or everything on the GPU.
  std::optional<ExecutionPlan> plan;
  /// "gpu+cpu": whether the first inferences take turns between the file's plan and either processor alone, and
  /// the fastest runs all others; a plan given here is followed. Not while profiling. In exact precision all
  /// give the same bits, below it each those of its own types. Two at a time take memory. The choice is kept in
  /// cache_directory.
  bool trial = true;
  Sharing sharing = Sharing::automatic;
  Synchronization synchronization = Synchronization::automatic;
  /// Longest wait of one processor for the other by polling, before the network goes on without polling.
  int sync_limit_ms = 2000;
  /// Whether inputs of type f32 take levels (u8) instead, where the file has a preprocessing rule for them:
  /// Network::inputs then tells that type.
  bool levels = false;
  /// Whether inferences replay what they recorded where the device has cl_khr_command_buffer or
  /// cl_qcom_recordable_queues.
  bool command_buffer = true;
  /// Lines of a tuning table (bnn_kernels/README.md) that go before the built-in ones.
  std::string tuning;
  /// Folder for program binaries and self-test results; empty: PHONEBIT_CACHE_DIR, XDG_CACHE_HOME/phonebit or
  /// HOME/.cache/phonebit.
  std::string cache_directory;
  /// Threads of an inference, the caller included; 0: one for each processor that they may use.
  int threads = 0;
  /// The thread that calls is kept there, too, as long as a call computes.
  Cores cores = Cores::any;
  /// The system's numbers of processors, in place of `cores` where not empty.
  std::vector<int> core_list;
  Hint hint = Hint::none;
  /// Whether each inference takes the time of each layer: Network::last_profile. A GPU then runs layers
  /// without replay.
  bool profiling = false;
  /// Largest sum of activations, scratch and packed weights that a file may ask for, and largest sum of an
  /// image's inputs and outputs; on a GPU a batch that needs more for its activations runs in several passes.
  /// 0: half of this machine's memory, at most 4 GiB.
  uint64_t max_memory_bytes = 0;
  /// Most operations of one image that a file may ask for: multiply-adds of values, xor-popcounts of 32-bit
  /// words, reads of 16 channels by pooling windows. 0: 10^12 for each processor that the calling thread may
  /// use.
  double max_work = 0.0;
};

/// Options of which nothing is asked before a network is loaded. C's setters (phonebit_options_set_...) and the
/// keywords of the Python module, which are the fields' names, are made from these rows.
// clang-format off
//     C's setter,      field
#define PHONEBIT_PLAIN_OPTIONS(SWITCH, NUMBER, TEXT) \
  SWITCH(in_place,        in_place)                  \
  SWITCH(trial,           trial)                     \
  SWITCH(levels,          levels)                    \
  SWITCH(command_buffer,  command_buffer)            \
  SWITCH(profiling,       profiling)                 \
  NUMBER(threads,         threads)                   \
  NUMBER(max_memory,      max_memory_bytes)          \
  TEXT  (tuning,          tuning)                    \
  TEXT  (cache_directory, cache_directory)
// clang-format on

}  // namespace phonebit::engine
