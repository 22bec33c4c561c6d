// How a network is loaded. A part of phonebit.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phonebit/records.h"
#include "phonebit/result.h"

namespace phonebit {
inline namespace v1 {

/// Which processors the threads of a network run on.
enum class Cores : int32_t {
  any = PHONEBIT_CORES_ANY,        ///< the system decides
  big = PHONEBIT_CORES_BIG,        ///< the clusters of highest capacity; everything where all are alike
  little = PHONEBIT_CORES_LITTLE,  ///< the cluster of lowest capacity
};

enum class Hint : int32_t {
  none = PHONEBIT_HINT_NONE,
  performance = PHONEBIT_HINT_PERFORMANCE,  ///< workers wait awake; Android's performance hint session
  power = PHONEBIT_HINT_POWER,              ///< workers sleep at once
};

/// How real-valued layers compute; binary layers are exact in all.
enum class Precision : int32_t {
  exact = PHONEBIT_PRECISION_EXACT,
  f16 = PHONEBIT_PRECISION_F16,    ///< a GPU stores float tensors as halves
  fast = PHONEBIT_PRECISION_FAST,  ///< what suits the processor: a GPU as f16, a CPU in 8-bit integers
};

namespace detail {

struct Destroy {
  void operator()(phonebit_options* object) const { phonebit_options_destroy(object); }
  void operator()(phonebit_network* object) const { phonebit_network_destroy(object); }
  void operator()(phonebit_job* object) const { phonebit_job_destroy(object); }
  void operator()(phonebit_energy_meter* object) const { phonebit_energy_meter_destroy(object); }
};

/// An object of the C interface that destroys itself.
template <class Object>
using Handle = std::unique_ptr<Object, Destroy>;

}  // namespace detail

/// Settings, in any order: `Options().device("gpu").threads(2)`. A plain value; what is wrong with one is
/// told when it is used. One thread at a time.
class Options {
 public:
  /// "auto" (default: the first GPU of OpenCL, else the CPU), "cpu", "cpu:neon", "gpu", "gpu:1", "gpu+cpu".
  Options& device(std::string name) { return set(device_, std::move(name)); }
  /// Of a forward pass, the caller included; 0 (default): one for each processor that may be used.
  Options& threads(int count) { return set(threads_, count); }
  Options& cores(Cores cores) { return set(cores_, cores); }
  /// The system's numbers of processors, in place of cores().
  Options& core_list(std::vector<int32_t> cores) { return set(core_list_, std::move(cores)); }
  Options& hint(Hint hint) { return set(hint_, hint); }
  /// Whether a file's bytes are used where they are, without a copy (a mapping, or the caller's memory); they
  /// must then stay unchanged as long as the network lives. phonebit_options_set_in_place says what else
  /// happens. Default false.
  Options& in_place(bool is_on) { return set(in_place_, is_on); }
  /// Whether f32 inputs take levels of pictures (u8) instead, where the file has a rule for them, as
  /// phonebit_options_set_levels says. Default false.
  Options& levels(bool is_on) { return set(levels_, is_on); }
  Options& precision(Precision precision) { return set(precision_, precision); }
  /// Folder for GPU program binaries and self-test results; an Android app gives its getCacheDir().
  Options& cache_directory(std::string path) { return set(cache_directory_, std::move(path)); }
  /// "gpu+cpu": who computes what, in place of the file's own plan; empty: everything on the GPU.
  Options& plan(std::vector<PlannedPart> parts) { return set(plan_, std::move(parts)); }
  Options& sharing(Sharing sharing) { return set(sharing_, sharing); }
  Options& synchronization(Synchronization way) { return set(synchronization_, way); }
  /// Whether the first passes take turns between the file's plan and either processor alone, and the fastest
  /// runs all others; default true. Only in exact precision; not of a plan() given here. The verdict is kept
  /// in the cache directory.
  Options& trial(bool is_on) { return set(trial_, is_on); }
  /// Longest wait of one processor for the other by polling.
  Options& sync_limit(int limit_ms) { return set(sync_limit_ms_, limit_ms); }
  /// Whether passes replay recorded kernels where the device can; default true.
  Options& command_buffer(bool is_on) { return set(command_buffer_, is_on); }
  /// Lines of a tuning table that go before the built-in ones.
  Options& tuning(std::string lines) { return set(tuning_, std::move(lines)); }
  /// Whether each pass also takes the time of each layer: Network::last_profile.
  Options& profiling(bool is_on) { return set(profiling_, is_on); }
  /// Largest sum of activations, scratch and packed weights that a file may ask for, largest sum of an image's
  /// inputs and outputs, and largest file. 0 (default): half of this machine's memory, at most 4 GiB.
  Options& max_memory(uint64_t bytes) { return set(max_memory_, bytes); }
  /// Most operations of one image that a file may ask for. 0 (default): 10^12 for each processor.
  Options& max_work(double operations) { return set(max_work_, operations); }
  /// The caller's cl_context, cl_device_id and in-order cl_command_queue (may be null), in place of device().
  Options& opencl(void* context, void* device, void* queue) {
    return set(opencl_, OpenCl{context, device, queue});
  }

  /// The same as an object of the C interface.
  Result<detail::Handle<phonebit_options>> handle() const {
    phonebit_options* raw = nullptr;
    phonebit_status status = phonebit_options_create(&raw);
    detail::Handle<phonebit_options> options(raw);
    if (status == PHONEBIT_OK) status = apply(raw);
    if (status != PHONEBIT_OK) return detail::failure(status);
    return options;
  }

 private:
  struct OpenCl {
    void *context, *device, *queue;
  };

  template <class Field, class Value>
  Options& set(Field& field, Value&& value) {
    field = std::forward<Value>(value);
    return *this;
  }

  /// Calls `setter` where `value` is set, unless something has failed before.
  template <class Value, class Setter>
  static void give(phonebit_status& status, const std::optional<Value>& value, const Setter& setter) {
    if (status == PHONEBIT_OK && value) status = setter(*value);
  }

  phonebit_status apply(phonebit_options* to) const {
    phonebit_status status = PHONEBIT_OK;
    give(status, device_, [&](auto& name) { return phonebit_options_set_device(to, name.c_str()); });
    give(status, threads_, [&](int count) { return phonebit_options_set_threads(to, count); });
    give(status, cores_, [&](Cores c) { return phonebit_options_set_cores(to, static_cast<int32_t>(c)); });
    give(status, core_list_, [&](auto& list) {
      return phonebit_options_set_core_list(to, list.data(), static_cast<int32_t>(list.size()));
    });
    give(status, hint_, [&](Hint h) { return phonebit_options_set_hint(to, static_cast<int32_t>(h)); });
    give(status, precision_,
         [&](Precision p) { return phonebit_options_set_precision(to, static_cast<int32_t>(p)); });
    give(status, cache_directory_,
         [&](auto& path) { return phonebit_options_set_cache_directory(to, path.c_str()); });
    give(status, plan_, [&](auto& parts) { return apply_plan(to, parts); });
    give(status, sharing_,
         [&](Sharing s) { return phonebit_options_set_sharing(to, static_cast<int32_t>(s)); });
    give(status, synchronization_, [&](Synchronization s) {
      return phonebit_options_set_synchronization(to, static_cast<int32_t>(s));
    });
    give(status, sync_limit_ms_, [&](int limit) { return phonebit_options_set_sync_limit(to, limit); });
    give(status, in_place_, [&](bool is_on) { return phonebit_options_set_in_place(to, is_on ? 1 : 0); });
    give(status, levels_, [&](bool is_on) { return phonebit_options_set_levels(to, is_on ? 1 : 0); });
    give(status, trial_, [&](bool is_on) { return phonebit_options_set_trial(to, is_on ? 1 : 0); });
    give(status, command_buffer_,
         [&](bool is_on) { return phonebit_options_set_command_buffer(to, is_on ? 1 : 0); });
    give(status, tuning_, [&](auto& lines) { return phonebit_options_set_tuning(to, lines.c_str()); });
    give(status, profiling_, [&](bool is_on) { return phonebit_options_set_profiling(to, is_on ? 1 : 0); });
    give(status, max_memory_, [&](uint64_t bytes) { return phonebit_options_set_max_memory(to, bytes); });
    give(status, max_work_, [&](double operations) { return phonebit_options_set_max_work(to, operations); });
    give(status, opencl_, [&](const OpenCl& own) {
      return phonebit_options_set_opencl(to, own.context, own.device, own.queue);
    });
    return status;
  }

  static phonebit_status apply_plan(phonebit_options* to, const std::vector<PlannedPart>& plan) {
    std::vector<phonebit_planned_part> parts;
    for (const PlannedPart& part : plan)
      parts.push_back({part.stage, static_cast<int32_t>(part.processor), part.layer, part.part});
    return phonebit_options_set_plan(to, parts.data(), static_cast<int32_t>(parts.size()));
  }

  std::optional<std::string> device_, cache_directory_, tuning_;
  std::optional<int> threads_, sync_limit_ms_;
  std::optional<Cores> cores_;
  std::optional<std::vector<int32_t>> core_list_;
  std::optional<Hint> hint_;
  std::optional<Precision> precision_;
  std::optional<std::vector<PlannedPart>> plan_;
  std::optional<Sharing> sharing_;
  std::optional<Synchronization> synchronization_;
  std::optional<bool> in_place_, levels_, trial_, command_buffer_, profiling_;
  std::optional<uint64_t> max_memory_;
  std::optional<double> max_work_;
  std::optional<OpenCl> opencl_;
};

}  // namespace v1
}  // namespace phonebit
