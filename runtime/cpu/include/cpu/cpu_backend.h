// The CPU as a Backend.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "cpu/lane.h"

namespace phonebit::engine::cpu {

/// A batch is run side by side, an image a thread, as far as there is one for each thread; what is left is run
/// image by image, each by all threads. So is everything where memory for that is short.
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
  std::string kernel(size_t index) const override { return all_threads_.executor.layer(index).kernel(); }
  MemoryInfo memory() const override;
  std::string device() const override { return std::string("cpu:") + isa_.name; }
  const char* isa() const override { return isa_.name; }
  threads::ThreadPool& pool() override { return all_threads_.executor.pool(); }
  std::vector<std::string> warnings() const override;

 private:
  /// Returns how many of the images it has run: the first ones.
  int run_side_by_side(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                       int batch, const Cancellation& cancellation);
  /// Whether there is a lane for each thread now.
  bool make_lanes();
  void copy_in(int tensor, const InputBuffer& from, int image);
  void copy_out(int tensor, const OutputBuffer& to, int image);

  const loader::Model& model_;
  const Isa& isa_;
  const Options options_;
  Lane all_threads_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // of a thread each; none before the first batch
  bool lacks_room_for_lanes_ = false;
};

}  // namespace phonebit::engine::cpu
