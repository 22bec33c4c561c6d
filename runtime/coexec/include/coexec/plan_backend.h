// A CPU and a GPU that work together on each image as a plan says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "coexec/executor.h"
#include "coexec/setup.h"
#include "cpu/level_inputs.h"

namespace phonebit::engine::coexec {

/// A batch is worked on image by image.
class PlanBackend final : public Backend {
 public:
  /// `processors` and `setup` outlive it, and `label` is for messages. Where polling was not asked for and the
  /// device's compiler does not know it, `setup` says events from then on. Throws Error(device).
  PlanBackend(const Processors& processors, std::shared_ptr<threads::ThreadPool> pool, Setup& setup,
              std::string label);

  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch, const Cancellation& cancellation) override;
  std::string kernel(size_t index) const override { return executor_->kernel(index); }
  MemoryInfo memory() const override;
  std::string device() const override { return label_; }
  const char* isa() const override { return processors_.isa.name; }
  threads::ThreadPool& pool() override { return processors_.pool; }
  std::vector<std::string> warnings() const override { return executor_->gpu_layers().warnings(); }

  /// One image with both processors measured: microseconds of each layer.
  void run_timed(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int image,
                 const Cancellation& cancellation, std::vector<double>& cpu_us, std::vector<double>& gpu_us);

  /// After a failure of the device: waits for its queue. True if it polled and waits by events from now on;
  /// false if nothing else can be tried here.
  bool recover(const Error& error);

 private:
  void make_executor();
  /// The image's first bytes in buffers of the network's inputs or outputs.
  std::vector<const std::byte*> inputs_of(const std::vector<InputBuffer>& inputs, int image);
  std::vector<std::byte*> outputs_of(const std::vector<OutputBuffer>& outputs, int image) const;

  Processors processors_;
  const loader::Model& model_;
  Setup& setup_;
  std::string label_;
  cpu::LevelInputs levels_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace phonebit::engine::coexec
