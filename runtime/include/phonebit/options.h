// How a network is loaded. A part of phonebit.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  Options& device(std::string name) { return text(phonebit_options_set_device, std::move(name)); }
  /// Of an inference, the caller included; 0 (default): one for each processor that may be used.
  Options& threads(int count) { return plain(phonebit_options_set_threads, count); }
  Options& cores(Cores cores) { return plain(phonebit_options_set_cores, static_cast<int32_t>(cores)); }
  /// The system's numbers of processors, in place of cores().
  Options& core_list(std::vector<int32_t> cores) {
    return call([cores = std::move(cores)](phonebit_options* to) {
      return phonebit_options_set_core_list(to, cores.data(), static_cast<int32_t>(cores.size()));
    });
  }
  Options& hint(Hint hint) { return plain(phonebit_options_set_hint, static_cast<int32_t>(hint)); }
  /// Whether a file's bytes are used where they are, without a copy (a mapping, or the caller's memory); they
  /// must then stay unchanged as long as the network lives. phonebit_options_set_in_place says what else
  /// happens. Default false.
  Options& in_place(bool is_on) { return plain(phonebit_options_set_in_place, is_on); }
  /// Whether f32 inputs take levels of images (u8) instead, where the file has a rule for them, as
  /// phonebit_options_set_levels says. Default false.
  Options& levels(bool is_on) { return plain(phonebit_options_set_levels, is_on); }
  Options& precision(Precision precision) {
    return plain(phonebit_options_set_precision, static_cast<int32_t>(precision));
  }
  /// Folder for GPU program binaries and self-test results; an Android app gives its getCacheDir().
  Options& cache_directory(std::string path) {
    return text(phonebit_options_set_cache_directory, std::move(path));
  }
  /// "gpu+cpu": who computes what, in place of the file's own plan; empty: everything on the GPU.
  Options& plan(const std::vector<PlannedPart>& plan) {
    std::vector<phonebit_planned_part> parts;
    for (const PlannedPart& part : plan)
      parts.push_back({part.stage, static_cast<int32_t>(part.processor), part.layer, part.part});
    return call([parts = std::move(parts)](phonebit_options* to) {
      return phonebit_options_set_plan(to, parts.data(), static_cast<int32_t>(parts.size()));
    });
  }
  Options& sharing(Sharing sharing) {
    return plain(phonebit_options_set_sharing, static_cast<int32_t>(sharing));
  }
  Options& synchronization(Synchronization way) {
    return plain(phonebit_options_set_synchronization, static_cast<int32_t>(way));
  }
  /// Whether the first inferences take turns between the file's plan and either processor alone, and the fastest
  /// runs all others; default true. Not of a plan() given here, nor while profiling. In exact precision all
  /// give the same bits, below it each those of its own types. The choice is kept in the cache directory.
  Options& trial(bool is_on) { return plain(phonebit_options_set_trial, is_on); }
  /// Longest wait of one processor for the other by polling.
  Options& sync_limit(int limit_ms) { return plain(phonebit_options_set_sync_limit, limit_ms); }
  /// Whether inferences replay recorded kernels where the device can; default true.
  Options& command_buffer(bool is_on) { return plain(phonebit_options_set_command_buffer, is_on); }
  /// Lines of a tuning table that go before the built-in ones.
  Options& tuning(std::string lines) { return text(phonebit_options_set_tuning, std::move(lines)); }
  /// Whether each inference also takes the time of each layer: Network::last_profile.
  Options& profiling(bool is_on) { return plain(phonebit_options_set_profiling, is_on); }
  /// Largest sum of activations, scratch and packed weights that a file may ask for, largest sum of an image's
  /// inputs and outputs, and largest file. 0 (default): half of this machine's memory, at most 4 GiB.
  Options& max_memory(uint64_t bytes) { return plain(phonebit_options_set_max_memory, bytes); }
  /// Most operations of one image that a file may ask for. 0 (default): 10^12 for each processor.
  Options& max_work(double operations) { return plain(phonebit_options_set_max_work, operations); }
  /// The caller's cl_context, cl_device_id and in-order cl_command_queue (may be null), in place of device().
  Options& opencl(void* context, void* device, void* queue) {
    return call(
        [=](phonebit_options* to) { return phonebit_options_set_opencl(to, context, device, queue); });
  }

  /// The same as an object of the C interface.
  Result<detail::Handle<phonebit_options>> handle() const {
    phonebit_options* raw = nullptr;
    phonebit_status status = phonebit_options_create(&raw);
    detail::Handle<phonebit_options> options(raw);
    for (const Setting& setting : settings_)
      if (status == PHONEBIT_OK) status = setting(raw);
    if (status != PHONEBIT_OK) return detail::failure(status);
    return options;
  }

 private:
  using Setting = std::function<phonebit_status(phonebit_options*)>;

  Options& call(Setting setting) { return settings_.push_back(std::move(setting)), *this; }
  template <class Value, class Given>
  Options& plain(phonebit_status (*setter)(phonebit_options*, Value), Given value) {
    return call([setter, value](phonebit_options* to) { return setter(to, static_cast<Value>(value)); });
  }
  Options& text(phonebit_status (*setter)(phonebit_options*, const char*), std::string text) {
    return call([setter, text = std::move(text)](phonebit_options* to) { return setter(to, text.c_str()); });
  }

  std::vector<Setting> settings_;  ///< in the order given: the last one counts
};

}  // namespace v1
}  // namespace phonebit
