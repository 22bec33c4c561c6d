// A CPU and a GPU behind the Backend interface, working on each image together as a plan says.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "coexec/executor.h"
#include "coexec/layer_measurement.h"
#include "coexec/trial.h"
#include "coexec/verdict.h"
#include "cpu/level_inputs.h"

namespace phonebit::engine::coexec {

/// A batch is worked on image by image, where the plan runs it.
///
/// A plan that the file brings is on trial in the first passes (Options::trial): they take turns between the
/// plan and one processor alone, then between the faster of these and the other, and the fastest runs all
/// others. The verdict is kept on disk: networks that are loaded later begin with it. Where the winner becomes
/// slower than the others have been, there is another trial. A plan of options is an order.
///
/// Nothing that goes wrong on the device costs a result: a time-out of polling makes the network wait by
/// events from then on; any other failure of the device leaves it to the CPU. The image is run again, and a
/// warning tells.
class CoexecBackend final : public Backend {
 public:
  /// `model` must stay where it is. The plan is options.plan, or the model's own for the device, or all
  /// layers on the GPU. Throws Error(device), Error(input) for a plan that does not fit the model.
  CoexecBackend(const loader::Model& model, std::shared_ptr<opencl::Context> context, std::string gpu_label,
                const cpu::Isa& isa, std::shared_ptr<threads::ThreadPool> pool, const Options& options);

  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch, const Cancellation& cancellation) override;
  std::string kernel(size_t index) const override;
  MemoryInfo memory() const override;
  std::string device() const override { return label_; }
  const char* isa() const override { return isa_.name; }
  threads::ThreadPool& pool() override { return *pool_; }
  std::vector<std::string> warnings() const override;

  // Network's functions of the same names.
  LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                           const std::optional<OutputPart>& gpu, int repeats,
                           const Cancellation& cancellation);
  PassTimes measure_pass(int repeats, const Cancellation& cancellation);
  std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu);
  std::string plan_key() const;
  const ExecutionPlan& plan() const { return plan_; }
  CoexecInfo info() const;

 private:
  Processors processors() { return {model_, isa_, *pool_, context_, programs_, options_}; }
  Runner planned_runner() const { return uses_gpu_ ? Runner::plan : Runner::cpu; }
  void make_first_executor();
  void make_executor();
  /// Those that are not there already.
  void add_warnings(const std::vector<std::string>& warnings);
  /// The network on one processor, if it is not there already.
  void make_alone(Runner runner);
  /// The runner, ready: both processors for the plan, else one.
  void make(Runner runner);
  /// Begins with what an earlier trial has found; false where there is none, or it cannot be done.
  bool take_kept_verdict();
  /// A warning where the plan has lost.
  void tell_verdict();
  void start_trial();
  /// Makes the rival of the duel at hand; one that cannot be made is passed over.
  void make_rival();
  /// A pass of a plan that is tried: in the trial, at whose end the fastest becomes who runs all others, or
  /// after it, when that one is watched.
  void run_tried(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
                 const Cancellation& cancellation);
  /// What the fastest of those that do not run took in the trial; infinite where nobody was compared.
  double rivals_ms() const;
  void end_trial();
  /// Leaves all to one, who is ready, and lets the others' memory go.
  void leave_to(Runner runner);
  /// The backend of the processor that runs the network alone; null where the plan runs it.
  Backend* alone() const { return alone(runner_); }
  Backend* alone(Runner runner) const;
  void run(Runner runner, const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
           int batch, const Cancellation& cancellation, std::vector<double>* layer_ms);
  /// Runs body; after a failure of the device makes the network work without what failed, and runs it again.
  template <class Body>
  void with_recovery(const Body& body);
  void recover(const Error& error);
  void stop_polling(const Error& error);
  /// The images' first bytes in buffers of the network's inputs or outputs.
  std::vector<const std::byte*> inputs_of(const std::vector<InputBuffer>& inputs, int image);
  std::vector<std::byte*> outputs_of(const std::vector<OutputBuffer>& outputs, int image) const;
  /// One image with both processors measured: microseconds of each layer.
  void run_timed(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int image,
                 const Cancellation& cancellation, std::vector<double>& cpu_us, std::vector<double>& gpu_us);

  const loader::Model& model_;
  std::shared_ptr<opencl::Context> context_;
  std::string gpu_label_, label_;
  const cpu::Isa& isa_;
  Options options_;
  std::shared_ptr<threads::ThreadPool> pool_;  // one for all: of two, one would spin where the other works
  cpu::LevelInputs levels_;
  opencl::ProgramCache programs_;
  ExecutionPlan plan_;
  Sharing sharing_;
  Synchronization synchronization_;
  std::vector<std::string> warnings_;
  std::string verdict_warning_;  // of the last trial; empty where the plan won
  Runner runner_ = Runner::plan;
  // Of who runs the network, and of its rival in a trial.
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Backend> cpu_alone_, gpu_alone_;
  bool is_tried_ = false, uses_gpu_ = true;  // of the plan
  std::optional<Trial> trial_;               // while it lasts
  std::optional<KeptVerdict> kept_verdict_;  // of a plan that is tried
  std::array<double, kRunners> trial_ms_{};  // what it found; zeros before
  SlownessWatch watch_;                      // after it
  /// The layer measured last: measuring it again finds its programs and memory in place.
  std::unique_ptr<LayerMeasurement> measurement_;
};

}  // namespace phonebit::engine::coexec
