// PhoneBit for C++17: load a .pbit file, run it on the CPU, on an OpenCL device, or on both.
//
//   auto network = phonebit::Network::load("model.pbit", phonebit::Options().device("auto"));
//   if (!network) return fail(network.error().text);
//   std::vector<float> scores(network->outputs()[0].elements());
//   auto done = network->forward({pixels}, {scores});
//
// A header-only wrapper of the C interface, phonebit_c.h: it needs no exceptions and no RTTI, and includes
// only the standard library. Objects own what they hold and are move-only; calls on one that was moved from
// give Status::input, facts of it are empty. Whatever can fail gives a Result. "Any thread" at a function
// means that it is safe from several threads at once on one object; others need one thread at a time for an
// object. Nothing here throws, except that running out of memory in a std::vector or std::string does what it
// does elsewhere.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "phonebit/options.h"
#include "phonebit/phonebit_c.h"
#include "phonebit/records.h"
#include "phonebit/result.h"

namespace phonebit {
inline namespace v1 {

/// "0.1.0", of the library in use.
inline std::string version() { return phonebit_version(); }

/// Instruction sets of this build, best first, then OpenCL devices, GPUs first. The first call loads OpenCL,
/// which blocks. Any thread.
Result<std::vector<DeviceInfo>> devices();
/// Why there is no OpenCL device, or "". Any thread.
inline std::string opencl_error() { return phonebit_opencl_error(); }
/// Makes the engine load this library instead of the system's, before anything else uses OpenCL.
inline Result<void> use_opencl_library(const std::string& path) {
  return detail::result_of(phonebit_use_opencl_library(path.c_str()));
}
/// Processors that are online. Reads files. Any thread.
Result<std::vector<CoreInfo>> cores();
/// Compares every kernel variant with the CPU on the OpenCL device of the options; `is_again`: even those
/// with a cached result. Those that fail are disabled. Blocks, up to minutes. Any thread.
Result<std::vector<SelfTestResult>> self_test(const Options& options = Options().device("gpu"),
                                              bool is_again = false);

/// An inference in the background. Destroying it does not cancel it, and it may outlive its network.
class Job {
 public:
  /// Waits up to `timeout_ms`: 0 polls, -1 waits for ever. The inference's result; Status::pending after the
  /// time-out. Any thread.
  Result<void> wait(int timeout_ms = -1) {
    return detail::result_of(phonebit_job_wait(handle_.get(), timeout_ms));
  }
  /// Whether wait() would return at once. Any thread.
  bool is_done() { return phonebit_job_wait(handle_.get(), 0) != PHONEBIT_PENDING; }

 private:
  friend class Network;
  explicit Job(phonebit_job* job) : handle_(job) {}
  detail::Handle<phonebit_job> handle_;
};

/// A loaded network. Owns its memory and its threads; destroying it cancels its jobs and waits for them.
class Network {
 public:
  /// Reads, checks and prepares a file; it may change or vanish afterwards, unless Options::in_place. Blocks;
  /// on a GPU's first start it compiles and tests kernels. Any thread.
  static Result<Network> load(const std::string& path, const Options& options = {});
  /// The same for a file in memory.
  static Result<Network> load_memory(Span<const uint8_t> file, const Options& options = {});
  /// The same for `bytes` bytes from `offset` in an open file, as Android's AAsset_openFileDescriptor gives
  /// them; bytes 0: to the end. The descriptor may be closed afterwards.
  static Result<Network> load_fd(int fd, int64_t offset, int64_t bytes, const Options& options = {});

  // Facts, fixed at load unless said otherwise. Copies. Any thread.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  std::vector<LayerInfo> layers() const;
  /// Class names, one per channel of the first output, or one per class of its boxes; may be empty.
  std::vector<std::string> labels() const;
  /// Indices by name.
  Result<int> find_input(const std::string& name) const;
  Result<int> find_output(const std::string& name) const;
  Result<Preprocessing> preprocessing(int input = 0) const;
  Result<Detection> detection(int output = 0) const;
  MemoryInfo memory() const;
  StartupInfo startup() const;
  /// JSON or "".
  std::string metadata() const { return text(phonebit_network_metadata); }
  /// "cpu:neon", "gpu:0 Mali-G610", "gpu:0 Mali-G610 + cpu:neon".
  std::string device() const { return text(phonebit_network_device); }
  /// What plans for two processors are kept under; "" on one.
  std::string plan_key() const { return text(phonebit_network_plan_key); }
  int threads() const;
  /// The plan in force; empty on one processor.
  std::vector<PlannedPart> plan() const;
  /// As it is now; Status::input on one processor.
  Result<CoexecInfo> coexec() const;
  /// Kernels that failed the self-test at load; a GPU that failed since.
  std::vector<std::string> warnings() const;

  /// Runs `batch` images. A buffer has `batch` images of one tensor, exactly batch * TensorInfo::bytes bytes,
  /// at a multiple of 4 unless u8; buffers must not overlap; f32 inputs must not hold NaN. Errors in
  /// arguments are found before anything is computed. Blocks; calls on one network take turns; allocates
  /// nothing once a thread has run such an inference. Any thread.
  Result<void> forward(Span<const Input> inputs, Span<const Output> outputs, int batch = 1);
  /// The same: `forward({pixels}, {scores})`.
  Result<void> forward(std::initializer_list<Input> inputs, std::initializer_list<Output> outputs,
                       int batch = 1) {
    return forward(Span<const Input>(inputs.begin(), inputs.size()),
                   Span<const Output>(outputs.begin(), outputs.size()), batch);
  }

  /// Called once in the network's own thread. It may start further inferences; it must not wait for any, destroy
  /// the network, or throw.
  using Done = std::function<void(const Result<void>&)>;
  /// Returns at once; inferences run one after the other, in the order of their calls. The tensors' memory must
  /// stay until the inference is done: when `done` has returned. Buffers of wrong number, size or place are errors
  /// here, before anything is queued; values that are not finite are the job's error. Allocates. Any thread.
  Result<Job> forward_async(Span<const Input> inputs, Span<const Output> outputs, int batch = 1,
                            Done done = nullptr);
  Result<Job> forward_async(std::initializer_list<KeptInput> inputs, std::initializer_list<Output> outputs,
                            int batch = 1, Done done = nullptr) {
    return forward_async(Span<const Input>(inputs.begin(), inputs.size()),
                         Span<const Output>(outputs.begin(), outputs.size()), batch, std::move(done));
  }
  /// The same for one image: `forward_async({pixels}, {scores}, [](const Result<void>& result) { ... })`.
  Result<Job> forward_async(std::initializer_list<KeptInput> inputs, std::initializer_list<Output> outputs,
                            Done done) {
    return forward_async(inputs, outputs, 1, std::move(done));
  }
  /// Inferences that run or wait end with Status::cancelled as soon as they can; later ones are not concerned.
  /// Any thread.
  Result<void> cancel() { return detail::result_of(phonebit_network_cancel(handle_.get())); }

  /// Milliseconds of each layer: median of `repeats` after a warm-up. Blocks; allocates. Any thread.
  Result<std::vector<double>> profile(Span<const Input> inputs, int batch = 1, int repeats = 10);
  /// Milliseconds of each layer in the last inference; needs Options::profiling. Any thread.
  Result<std::vector<double>> last_profile();

  /// Crops, turns, resizes and normalises an image as the file says, or as `rule` says, into the values of an
  /// input. May allocate. Any thread.
  Result<void> prepare_image(const Image& image, const Output& values, int input = 0,
                             const Preprocessing* rule = nullptr) const;
  /// The same.
  Result<void> prepare_picture(const Image& image, const Output& values, int input = 0,
                               const Preprocessing* rule = nullptr) const {
    return prepare_image(image, values, input, rule);
  }

  /// "gpu+cpu": the minimum of up to `repeats` runs of a layer with these parts; null: that processor does
  /// nothing. Blocks; allocates. Any thread.
  Result<LayerTimes> measure_layer(int layer, const Part* cpu, const Part* gpu, int repeats);
  /// The launches by which the GPU would compute a part.
  Result<std::vector<DispatchInfo>> dispatch(int layer, const Part& gpu);

  /// The object of the C interface; the network keeps it.
  phonebit_network* get() const { return handle_.get(); }
  /// Takes such an object over, as the builder of phonebit_layers_c.h gives it.
  explicit Network(phonebit_network* network) : handle_(network) {}

 private:
  /// `load` is one of the C interface's functions without its last two arguments.
  template <class Load>
  static Result<Network> load_by(const Options& options, const Load& load);
  std::string text(phonebit_status (*get)(const phonebit_network*, const char**)) const;

  detail::Handle<phonebit_network> handle_;
};

/// Sources of energy readings on this machine, and the kinds that are absent. Reads files. Any thread.
Result<std::vector<EnergySourceInfo>> energy_sources();

/// Reads a source in a thread of its own between start and stop. One thread at a time.
class EnergyMeter {
 public:
  /// `source`: a name of energy_sources(); "": the best one here. Status::device "not measured: no source"
  /// where there is none.
  static Result<EnergyMeter> create(const std::string& source = "");

  Result<void> start() { return detail::result_of(phonebit_energy_meter_start(handle_.get())); }
  /// What flowed since start; the meter goes on. Status::device where the source moved less than twice.
  Result<EnergyResult> read() { return result(phonebit_energy_meter_read); }
  Result<EnergyResult> stop() { return result(phonebit_energy_meter_stop); }

 private:
  explicit EnergyMeter(phonebit_energy_meter* meter) : handle_(meter) {}
  Result<EnergyResult> result(phonebit_status (*get)(phonebit_energy_meter*, phonebit_energy_result*));

  detail::Handle<phonebit_energy_meter> handle_;
};

}  // namespace v1
}  // namespace phonebit

#include "phonebit/phonebit_inline.h"
