// An OpenCL device behind the Backend interface: chooses kernels, then drives an Executor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "opencl/executor.h"
#include "types/layer.h"

namespace phonebit::engine::opencl {

class OpenClBackend final : public Backend {
 public:
  /// `model` must stay where it is. `label`: "gpu:0 NVIDIA H200". The caller is kept on `cores`; none: any.
  /// Throws Error(device).
  OpenClBackend(const loader::Model& model, std::shared_ptr<Context> context, std::string label,
                std::vector<int> cores, const Options& options);

  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch, const Cancellation& cancellation) override;
  std::string kernel(size_t index) const override { return executor_.layers().layer(index).kernel; }
  MemoryInfo memory() const override;
  std::string device() const override { return label_; }
  const char* isa() const override { return "opencl"; }
  threads::ThreadPool& pool() override { return pool_; }
  std::vector<std::string> warnings() const override { return executor_.layers().warnings(); }

  // Network's functions of the same names.
  void forward_on_device(const std::vector<DeviceBuffer>& inputs, const std::vector<DeviceBuffer>& outputs,
                         int batch);
  std::vector<std::string> candidates(size_t index) const;
  std::vector<KernelProgram> programs(size_t index) const;
  double measure_choice(size_t index, const std::string& choice, int batch, int repeats, bool* is_equal,
                        const Cancellation& cancellation);
  std::string tuning_line(size_t index, const std::string& choice) const;
  StartupInfo startup() const;
  OpenClHandles handles() const;

 private:
  /// Calls body(first image, images) for runs of at most largest_batch() images, prepared for each. Throws
  /// Error(cancelled) before a run.
  template <class Body>
  void in_passes(int batch, const Cancellation& cancellation, const Body& body);
  /// Runs body, and empties the queue if it throws: commands may still use the caller's memory.
  template <class Body>
  void guarded(const Body& body);
  void upload_inputs(const std::vector<InputBuffer>& inputs, int first, int images);
  /// Runs all layers on what is in the queue before them; when they are done, adds their milliseconds by the
  /// device's clock.

  const loader::Model& model_;
  std::shared_ptr<Context> context_;
  std::string label_;
  ProgramCache programs_;
  Executor executor_;
  threads::ThreadPool pool_;  // the caller alone
  bool can_replay_;
  std::vector<Handle<cl_mem>> caller_parts_;  // sub-buffers of callers' buffers
};

/// For each op and shape class of the built-in table, the choice that comes first on a device.
std::vector<std::pair<std::string, std::string>> table_choices(const Device& device);

/// All choices of kernels and parameters for an op, those of the table first.
std::vector<KernelChoice> all_choices(const loader::Model& model, const loader::Op& op, const Target& target);

}  // namespace phonebit::engine::opencl
