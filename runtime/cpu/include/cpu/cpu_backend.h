// The CPU behind the Backend interface: a batch is run image by image.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "cpu/executor.h"
#include "cpu/level_inputs.h"

namespace phonebit::engine::cpu {

class CpuBackend final : public Backend {
 public:
  /// `model` must stay where it is. Throws Error when memory is short.
  CpuBackend(const loader::Model& model, const Isa& isa, const Options& options,
             std::shared_ptr<threads::ThreadPool> pool);

  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch, const Cancellation& cancellation) override;
  std::string kernel(size_t index) const override { return executor_.layer(index).kernel(); }
  MemoryInfo memory() const override;
  std::string device() const override { return std::string("cpu:") + isa_.name; }
  const char* isa() const override { return isa_.name; }
  threads::ThreadPool& pool() override { return executor_.pool(); }
  std::vector<std::string> warnings() const override;

 private:
  void bind(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int image);
  void copy_in(int tensor, const InputBuffer& from, int image);
  void copy_out(int tensor, const OutputBuffer& to, int image);

  const loader::Model& model_;
  const Isa& isa_;
  Executor executor_;
  LevelInputs levels_;
  Precision precision_;
  std::vector<const std::byte*> bound_inputs_;
  std::vector<std::byte*> bound_outputs_;
};

}  // namespace phonebit::engine::cpu
