#include "engine/network.h"

#include <chrono>
#include <mutex>
#include <numeric>
#include <utility>

#include "analysis/memory_budget.h"
#include "analysis/op_tensors.h"
#include "analysis/work.h"
#include "backend/host_buffers.h"
#include "backend/input_values.h"
#include "backend/level_model.h"
#include "engine/buffer_checks.h"
#include "engine/descriptions.h"
#include "engine/load_options.h"
#include "engine/make_backend.h"
#include "loader/loader.h"
#include "threads/affinity.h"
#include "threads/floating_point_scope.h"
#include "threads/fork_generation.h"
#include "threads/performance_hint.h"
#include "threads/turn_lock.h"
#include "types/cancellation.h"
#include "types/fail.h"

#ifndef PHONEBIT_VERSION
#error "the build defines PHONEBIT_VERSION"
#endif

namespace phonebit::engine {

/// The model, what executes it, and descriptions for callers. The backend refers to `model`, so this never
/// moves.
class Network::Implementation {
 public:
  const loader::Model model;
  std::unique_ptr<Backend> backend;
  std::vector<TensorInfo> tensors, inputs, outputs;
  std::vector<LayerInfo> layers;
  std::vector<std::vector<int>> layer_inputs, layer_outputs;
  std::vector<int> all_tensors;
  std::unique_ptr<threads::PerformanceHint> performance_hint;  // null: not asked for
  threads::TurnLock turn;                                      // held while the backend works
  CancelCount cancel_count{0};
  const bool is_profiling;
  const unsigned fork_generation = threads::fork_generation();
  std::vector<double> layer_ms;  // of the layers in the present inference; belongs to the turn
  threads::TurnLock last_ms_lock;
  std::vector<double> last_ms;  // of the last one; empty before the first

  Implementation(loader::Model&& checked, const Options& options)
      : model(std::move(checked)), is_profiling(options.profiling), layer_ms(model.ops.size()) {
    backend = make_backend(model, options);
    if (options.hint == Hint::performance) performance_hint = std::make_unique<threads::PerformanceHint>();
    for (const loader::Tensor& tensor : model.tensors) tensors.push_back(describe_tensor(tensor));
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      inputs.push_back(tensors[static_cast<size_t>(model.inputs[i])]);
      if (options.levels && level_rule(model, i) != nullptr) inputs[i].dtype = ElementType::u8;
    }
    for (const int tensor : model.outputs) outputs.push_back(tensors[static_cast<size_t>(tensor)]);
    for (size_t i = 0; i < model.ops.size(); ++i) {
      layers.push_back(describe_layer(model, model.ops[i]));
      layers.back().kernel = backend->kernel(i);
      layer_inputs.push_back(analysis::tensors_read(model.ops[i]));
      layer_outputs.push_back(analysis::tensors_written(model.ops[i]));
    }
    all_tensors.resize(tensors.size());
    std::iota(all_tensors.begin(), all_tensors.end(), 0);
  }

  void check_terminals(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out,
                       int batch) const {
    check_buffers("output", out, tensors, model.outputs, batch);
    check_disjoint(in, out);
    check_inputs(in, batch);
  }

  void check_inputs(const std::vector<InputBuffer>& in, int batch) const {
    for (size_t i = 0; i < std::min(in.size(), model.inputs.size()); ++i) {
      if (in[i].is_levels && level_rule(model, i) == nullptr)
        fail(
            ErrorCode::input,
            "input '%s': got levels (u8), but the file does not say what values they stand for; pass float32 "
            "values, or convert the model again with --input-range or --preprocessing",
            inputs[i].name.c_str());
    }
    check_buffers("input", in, tensors, model.inputs, batch);
  }

  /// The caller holds `turn`.
  void check_values(const std::vector<InputBuffer>& in) {
    for (size_t i = 0; i < in.size(); ++i)
      check_finite(model.tensor(model.inputs[i]), in[i], backend->pool());
  }

  /// Drivers do not outlive a fork, and would wait for threads that are gone.
  void check_process() const {
    const bool has_driver = backend->gpu() != nullptr || backend->coexec() != nullptr;
    if (fork_generation == threads::fork_generation() || !has_driver) return;
    fail(ErrorCode::device, "device %s: this process was forked after the network was loaded; load it again",
         backend->device().c_str());
  }

  void check_layer(size_t index) const {
    if (index >= layers.size())
      fail(ErrorCode::input, "layer %zu does not exist, there are %zu", index, layers.size());
  }

  GpuAbilities& gpu() const {
    if (backend->gpu() == nullptr)
      fail(ErrorCode::input, "device %s: this needs a network on 'gpu'", backend->device().c_str());
    return *backend->gpu();
  }
  CoexecAbilities& coexec() const {
    if (backend->coexec() == nullptr)
      fail(ErrorCode::input, "device %s: this needs a network on 'gpu+cpu'", backend->device().c_str());
    return *backend->coexec();
  }
};

/// A caller's turn to use the backend: waits for it, and keeps the calling thread on the network's processors
/// meanwhile. Throws Error(cancelled) if cancel() came before the turn did.
class Network::Turn {
 public:
  explicit Turn(Implementation& own)
      : cancellation_(own.cancel_count), lock_(own.turn), cores_(own.backend->pool().cores()) {
    cancellation_.check();
    own.check_process();
  }
  const Cancellation& cancellation() const { return cancellation_; }

 private:
  const Cancellation cancellation_;  // before the lock: a wait counts
  const std::lock_guard<threads::TurnLock> lock_;
  const threads::AffinityScope cores_;
  const threads::FloatingPointScope rounding_;
};

namespace {

loader::FileAccess access_of(const Options& options) { return {options.in_place, options.max_memory_bytes}; }

}  // namespace

template <class Open>
Network Network::load_from(const std::string& source, const Options& options, const Open& open) {
  const threads::FloatingPointScope rounding;
  try {
    const Options limited = with_limits(options);
    loader::Model model = loader::load_model(open(limited));
    analysis::check_work(model, limited.max_work);
    analysis::check_arrays(model, limited.max_memory_bytes);
    return Network(std::make_unique<Implementation>(std::move(model), limited));
  } catch (...) {
    fail_to_load(source);
  }
}

Network Network::load(const std::string& path, const Options& options) {
  return load_from(path, options,
                   [&](const Options& o) { return loader::FileBytes::of_path(path, access_of(o)); });
}

Network Network::load_memory(const void* data, size_t bytes, const Options& options) {
  return load_from(format_text("memory of %zu bytes", bytes), options,
                   [&](const Options& o) { return loader::FileBytes::of_memory(data, bytes, access_of(o)); });
}

Network Network::load_descriptor(int descriptor, int64_t offset, int64_t bytes, const Options& options) {
  return load_from(format_text("descriptor %d", descriptor), options, [&](const Options& o) {
    return loader::FileBytes::of_descriptor(descriptor, offset, bytes, access_of(o));
  });
}

Network::Network(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const std::vector<TensorInfo>& Network::inputs() const { return implementation_->inputs; }
bool Network::takes_levels(size_t input) const {
  const Implementation& own = *implementation_;
  return own.inputs[input].dtype != own.tensors[static_cast<size_t>(own.model.inputs[input])].dtype;
}
const std::vector<TensorInfo>& Network::outputs() const { return implementation_->outputs; }
const std::vector<TensorInfo>& Network::tensors() const { return implementation_->tensors; }
const std::vector<LayerInfo>& Network::layers() const { return implementation_->layers; }
const std::vector<Preprocessing>& Network::preprocessing() const {
  return implementation_->model.preprocessing;
}
const std::vector<DetectionHead>& Network::detection() const { return implementation_->model.detection; }
const std::vector<std::string>& Network::labels() const { return implementation_->model.labels; }

void Network::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                      int batch) {
  Implementation& own = *implementation_;
  own.check_terminals(inputs, outputs, batch);
  const Turn turn(own);
  if (!own.backend->checks_values(batch)) own.check_values(inputs);
  const auto begin = std::chrono::steady_clock::now();
  own.backend->forward(inputs, outputs, batch, turn.cancellation(),
                       own.is_profiling ? &own.layer_ms : nullptr);
  if (own.performance_hint)
    own.performance_hint->report(own.backend->pool(), (std::chrono::steady_clock::now() - begin) / batch);
  if (!own.is_profiling) return;
  const std::lock_guard<threads::TurnLock> lock(own.last_ms_lock);
  own.last_ms = own.layer_ms;
}

void Network::check(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                    int batch) const {
  implementation_->check_terminals(inputs, outputs, batch);
}

/// An inference between its begin and its finish.
class Network::Inference {
 public:
  explicit Inference(const Implementation& own) : cancellation(own.cancel_count) {}
  const Cancellation cancellation;
  std::unique_ptr<Backend::Inference> running;  // null: it is over
};

std::shared_ptr<Network::Inference> Network::begin(const std::vector<InputBuffer>& inputs,
                                                   const std::vector<OutputBuffer>& outputs, int batch) {
  Implementation& own = *implementation_;
  auto inference = std::make_shared<Inference>(own);
  if (own.is_profiling) {
    forward(inputs, outputs, batch);
    return inference;
  }
  own.check_terminals(inputs, outputs, batch);
  const Turn turn(own);
  if (!own.backend->checks_values(batch)) own.check_values(inputs);
  inference->running = own.backend->begin(inputs, outputs, batch, turn.cancellation());
  return inference;
}

void Network::finish(Inference& inference) {
  if (!inference.running) return;
  const Turn turn(*implementation_);
  const std::unique_ptr<Backend::Inference> running = std::move(inference.running);
  running->finish(inference.cancellation);
}

void Network::cancel() { implementation_->cancel_count.fetch_add(1); }

std::vector<double> Network::last_profile() const {
  Implementation& own = *implementation_;
  if (!own.is_profiling)
    fail(ErrorCode::input, "passes of this network are not measured; load it with profiling");
  const std::lock_guard<threads::TurnLock> lock(own.last_ms_lock);
  if (own.last_ms.empty() && !own.layer_ms.empty())
    fail(ErrorCode::input, "there was no forward pass yet; run one first");
  return own.last_ms;
}

std::vector<double> Network::profile(const std::vector<InputBuffer>& inputs, int batch, int repeats) {
  if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
  const Turn turn(*implementation_);
  implementation_->check_inputs(inputs, batch);
  implementation_->check_values(inputs);
  const OwnTerminals own(implementation_->model, batch);
  std::vector<std::vector<double>> times(layers().size());
  std::vector<double> of_pass(times.size());
  for (int repeat = -1; repeat < repeats; ++repeat) {  // -1: the warm-up
    implementation_->backend->forward(inputs, own.outputs, batch, turn.cancellation(), &of_pass);
    for (size_t i = 0; repeat >= 0 && i < times.size(); ++i) times[i].push_back(of_pass[i]);
  }
  std::vector<double> result;
  for (std::vector<double>& of_layer : times) result.push_back(median(std::move(of_layer)));
  return result;
}

void Network::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                          int batch) {
  Implementation& own = *implementation_;
  check_buffers("tensor", tensors, own.tensors, own.all_tensors, batch);
  check_disjoint(inputs, tensors);
  const Turn turn(own);
  own.check_inputs(inputs, batch);
  own.check_values(inputs);
  own.backend->activations(inputs, tensors, batch, turn.cancellation());
}

void Network::run_op(size_t index, const std::vector<InputBuffer>& operands,
                     const std::vector<OutputBuffer>& results, int batch) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  check_buffers("operand", operands, own.tensors, own.layer_inputs[index], batch);
  check_buffers("result", results, own.tensors, own.layer_outputs[index], batch);
  check_disjoint(operands, results);
  const Turn turn(own);
  own.backend->run_op(index, operands, results, batch, turn.cancellation());
}

void Network::forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                const std::vector<DeviceBuffer>& outputs, int batch) {
  Implementation& own = *implementation_;
  const Turn turn(own);
  own.gpu().forward_on_device(inputs, outputs, batch);
}

std::vector<std::string> Network::candidates(size_t index) const {
  implementation_->check_layer(index);
  const GpuAbilities* const gpu = implementation_->backend->gpu();
  return gpu != nullptr ? gpu->candidates(index) : std::vector<std::string>{};
}

std::vector<KernelProgram> Network::programs(size_t index) const {
  const std::lock_guard<threads::TurnLock> turn(implementation_->turn);
  implementation_->check_layer(index);
  return implementation_->gpu().programs(index);
}

double Network::measure_choice(size_t index, const std::string& choice, int batch, int repeats,
                               bool* is_equal) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  if (batch < 1 || repeats < 1)
    fail(ErrorCode::input, "batch %d, repeats %d: expected at least 1", batch, repeats);
  const Turn turn(own);
  return own.gpu().measure_choice(index, choice, batch, repeats, is_equal, turn.cancellation());
}

std::string Network::tuning_line(size_t index, const std::string& choice) const {
  implementation_->check_layer(index);
  return implementation_->gpu().tuning_line(index, choice);
}

LayerTimes Network::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                  const std::optional<OutputPart>& gpu, int repeats) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
  const Turn turn(own);
  return own.coexec().measure_layer(index, cpu, gpu, repeats, turn.cancellation());
}

PassTimes Network::measure_pass(int repeats) {
  Implementation& own = *implementation_;
  if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
  const Turn turn(own);
  return own.coexec().measure_pass(repeats, turn.cancellation());
}

std::vector<DispatchInfo> Network::dispatch(size_t index, const OutputPart& gpu) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  const Turn turn(own);
  return own.coexec().dispatch(index, gpu);
}

std::string Network::plan_key() const {
  const CoexecAbilities* const coexec = implementation_->backend->coexec();
  return coexec != nullptr ? coexec->plan_key() : "";
}

ExecutionPlan Network::plan() const {
  const CoexecAbilities* const coexec = implementation_->backend->coexec();
  return coexec != nullptr ? coexec->plan() : ExecutionPlan{};
}

// What an inference may change is read in a turn of its own, though not as one: cancel() does not concern it.

CoexecInfo Network::coexec() const {
  const std::lock_guard<threads::TurnLock> turn(implementation_->turn);
  return implementation_->coexec().info();
}

std::vector<std::string> Network::warnings() const {
  const std::lock_guard<threads::TurnLock> turn(implementation_->turn);
  return implementation_->backend->warnings();
}

MemoryInfo Network::memory() const {
  const std::lock_guard<threads::TurnLock> turn(implementation_->turn);
  return implementation_->backend->memory();
}

std::string Network::device() const { return implementation_->backend->device(); }

StartupInfo Network::startup() const {
  const std::lock_guard<threads::TurnLock> turn(implementation_->turn);
  const GpuAbilities* const gpu = implementation_->backend->gpu();
  return gpu != nullptr ? gpu->startup() : StartupInfo{};
}

GpuHandles Network::handles() const {
  const GpuAbilities* const gpu = implementation_->backend->gpu();
  return gpu != nullptr ? gpu->handles() : GpuHandles{};
}

const std::vector<int>& Network::layer_inputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_inputs[index];
}

const std::vector<int>& Network::layer_outputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_outputs[index];
}

const std::string& Network::metadata() const { return implementation_->model.metadata; }
const char* Network::isa() const { return implementation_->backend->isa(); }
int Network::threads() const { return implementation_->backend->pool().threads(); }

const char* version() { return PHONEBIT_VERSION; }

}  // namespace phonebit::engine
