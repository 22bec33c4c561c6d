// A CPU and a GPU as one Backend: what goes wrong on the GPU costs no result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "coexec/auto_selection.h"
#include "coexec/measurement.h"

namespace phonebit::engine::coexec {

/// Runs the selected candidate: the plan on both processors (PlanBackend), or one of them alone. A plan that
/// the file brings is compared in the first inferences (AutoSelection); one given in Options is used without a
/// comparison.
///
/// After a time-out of polling the processors wait by events; after any other failure of the device the CPU
/// runs everything. The image is run again, with a warning.
class CoexecBackend final : public Backend, public CoexecAbilities {
 public:
  /// `model` must stay where it is. See Setup for the plan. Throws Error(device), Error(input) for a plan that
  /// does not fit the model.
  CoexecBackend(const loader::Model& model, std::shared_ptr<gpu::Device> device, std::string gpu_label,
                const cpu::Isa& isa, std::shared_ptr<threads::ThreadPool> pool, const Options& options);

  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch,
              const Cancellation& cancellation) override {
    selection_.backend().run_op(index, operands, results, batch, cancellation);
  }
  std::string kernel(size_t index) const override { return selection_.backend().kernel(index); }
  MemoryInfo memory() const override;
  std::string device() const override { return label_; }
  const char* isa() const override { return isa_.name; }
  threads::ThreadPool& pool() override { return *pool_; }
  std::vector<std::string> warnings() const override;

  CoexecAbilities* coexec() override { return this; }
  LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                           const std::optional<OutputPart>& gpu, int repeats,
                           const Cancellation& cancellation) override;
  PassTimes measure_pass(int repeats, const Cancellation& cancellation) override;
  std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu) override {
    return coexec::dispatch(processors(), setup_, index, gpu);
  }
  std::string plan_key() const override;
  const ExecutionPlan& plan() const override { return setup_.plan; }
  CoexecInfo info() const override;

 private:
  Processors processors() { return {model_, isa_, *pool_, device_, programs_, options_}; }
  std::unique_ptr<Backend> make(Candidate candidate);
  /// Runs body; after a failure of the device makes the network work without what failed, and runs it again.
  template <class Body>
  void with_recovery(const Body& body);
  void recover(const Error& error);

  const loader::Model& model_;
  std::shared_ptr<gpu::Device> device_;
  std::string gpu_label_, label_;
  const cpu::Isa& isa_;
  Options options_;
  std::shared_ptr<threads::ThreadPool> pool_;  // one for all: of two, one would spin where the other works
  gpu::ProgramCache programs_;
  Setup setup_;
  AutoSelection selection_;
  /// The layer measured last: measuring it again finds its programs and memory in place.
  std::unique_ptr<LayerMeasurement> measurement_;
};

}  // namespace phonebit::engine::coexec
