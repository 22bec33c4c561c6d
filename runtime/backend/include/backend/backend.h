// What executes a loaded model: a CPU, a GPU or both. Network checks buffers and takes turns, then
// calls these.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/abilities.h"
#include "loader/model.h"
#include "threads/thread_pool.h"
#include "types/cancellation.h"
#include "types/network_state.h"
#include "types/tensor.h"

namespace phonebit::engine {

/// Buffers were checked by Network: their number, bytes and alignment fit the tensors. One caller at a time.
/// Passes look at their Cancellation where they can stop without harm, and leave the backend ready for
/// others.
class Backend {
 public:
  /// An inference that was begun. Destroying one that is not finished waits for it; its backend must outlive it.
  class Inference {
   public:
    virtual ~Inference() = default;
    /// Waits until the outputs are written.
    virtual void finish(const Cancellation& cancellation) = 0;
  };

  virtual ~Backend() = default;

  /// Whether forward and begin look for values that are not finite while they copy inputs.
  virtual bool checks_values(int /*batch*/) const { return false; }
  /// Buffers of network inputs and outputs, `batch` images each. `layer_ms` gets the milliseconds of each
  /// layer in this inference; null: they are not measured.
  virtual void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                       int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) = 0;
  /// An inference whose outputs need not be written before its finish(). were read when this returns. Null: it is over.
  virtual std::unique_ptr<Inference> begin(const std::vector<InputBuffer>& inputs,
                                           const std::vector<OutputBuffer>& outputs, int batch,
                                           const Cancellation& cancellation) {
    forward(inputs, outputs, batch, cancellation, nullptr);
    return nullptr;
  }
  /// `tensors`: one buffer for each tensor of the model.
  virtual void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                           int batch, const Cancellation& cancellation) = 0;
  /// Buffers in the order of analysis::tensors_read and tensors_written.
  virtual void run_op(size_t index, const std::vector<InputBuffer>& operands,
                      const std::vector<OutputBuffer>& results, int batch,
                      const Cancellation& cancellation) = 0;

  /// Name of what runs a layer.
  virtual std::string kernel(size_t index) const = 0;
  virtual MemoryInfo memory() const = 0;
  /// "cpu:avx512", "gpu:0 NVIDIA H200".
  virtual std::string device() const = 0;
  /// Instruction set of the CPU, or the API of the GPU ("opencl").
  virtual const char* isa() const = 0;
  /// Threads of the host that take part.
  virtual threads::ThreadPool& pool() = 0;
  /// What a user should know about the load, e.g. kernels that failed the self-test.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// Null where it has no such abilities.
  virtual GpuAbilities* gpu() { return nullptr; }
  virtual CoexecAbilities* coexec() { return nullptr; }
};

}  // namespace phonebit::engine
