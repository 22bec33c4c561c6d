// The engine as one class: load a .pbit file, run it. Users include phonebit/phonebit.h instead.
//
//   phonebit::engine::Network network = phonebit::engine::Network::load("model.pbit");
//   std::vector<float> scores(network.outputs()[0].elements());
//   network.forward({{pixels, pixel_bytes}}, {{scores.data(), scores.size() * sizeof(float)}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "types/detection.h"
#include "types/error.h"
#include "types/layer.h"
#include "types/network_state.h"
#include "types/options.h"
#include "types/plan.h"
#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine {

/// A loaded network. Move-only; owns its memory and its threads.
///
/// Thread-safety: every member may be called from any thread. forward, profile, activations and run_op of one
/// object take turns; different objects run at the same time. Buffers of a call are used only until it
/// returns; they must not overlap. Errors: every failure is a phonebit::engine::Error, and the object stays usable.
class Network {
 public:
  /// Reads, checks and prepares a file; it may change or vanish afterwards, unless Options::in_place. Blocks
  /// for the time of reading it once. Throws Error: input (path), format (content), device (ISA, memory).
  static Network load(const std::string& path, const Options& options = {});

  /// The same for the bytes of a file in memory.
  static Network load_memory(const void* data, size_t bytes, const Options& options = {});
  /// The same for `bytes` bytes from `offset` of an open file; 0: to its end. The descriptor may be closed
  /// afterwards.
  static Network load_descriptor(int descriptor, int64_t offset, int64_t bytes, const Options& options = {});

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  /// As callers give them; with Options::levels, of type u8 where takes_levels().
  const std::vector<TensorInfo>& inputs() const;
  bool takes_levels(size_t input) const;
  const std::vector<TensorInfo>& outputs() const;
  /// All activation tensors, inputs and outputs among them.
  const std::vector<TensorInfo>& tensors() const;
  const std::vector<LayerInfo>& layers() const;

  /// What images become before they are inputs, where the file tells; at most one record per input.
  const std::vector<Preprocessing>& preprocessing() const;
  /// What boxes the outputs mean, where the file tells; at most one record per output.
  const std::vector<DetectionHead>& detection() const;
  /// Class names, one per channel of the first output, or one per class of its boxes; empty where the file has
  /// none.
  const std::vector<std::string>& labels() const;

  /// Runs `batch` images. Buffer i holds `batch` images of tensor i, one after the other: exactly batch *
  /// bytes() bytes, 4-byte aligned unless u8. Inputs of type f32 must be finite, or levels
  /// (InputBuffer::is_levels). Blocks; a CPU allocates nothing. Throws Error(input), naming the tensor, before
  /// any output is written.
  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
               int batch = 1);

  /// Throws what forward() would about these buffers, their contents apart, and computes nothing.
  void check(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
             int batch) const;

  /// The same in two steps, so that a device computes one inference while the next one's inputs and the last one's
  /// outputs are copied. `inputs` were read when begin returns; `outputs` are written by finish. Inferences may be
  /// finished in any order, and must not outlive the network; dropping one waits for it.
  class Inference;
  std::shared_ptr<Inference> begin(const std::vector<InputBuffer>& inputs,
                                   const std::vector<OutputBuffer>& outputs, int batch = 1);
  void finish(Inference& inference);

  /// Inferences that run or wait for their turn now throw Error(cancelled) as soon as they can: the CPU stops
  /// within a layer, a GPU finishes the layers that it was given. Other measurements
  /// than profile() end when they are done. Later inferences are not concerned. Does not block.
  void cancel();

  /// Milliseconds of each layer in the last inference that was neither cancelled nor failed, for its whole
  /// batch; on "gpu+cpu" the slower processor's. Inferences of forward_on_device do not count. Throws
  /// Error(input) without Options::profiling, or before the first inference.
  std::vector<double> last_profile() const;

  /// Milliseconds of each layer for the batch: the median of `repeats` runs after one warm-up. Allocates.
  std::vector<double> profile(const std::vector<InputBuffer>& inputs, int batch, int repeats);

  /// Runs `batch` images and copies every tensor out; `tensors` has one buffer for each of tensors().
  /// Allocates.
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch = 1);

  /// Runs layer `index` alone: `operands` are the tensors in layers()[index].inputs, `results` those in
  /// .outputs. Where a tensor is listed twice, the later buffer counts. Operands hold values that the layers
  /// before can give: a layer that reads bits as floats may count on -1 and +1. Allocates.
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch = 1);

  /// Indices into tensors() of what layer `index` reads and writes, in the order of LayerInfo.
  const std::vector<int>& layer_inputs(size_t index) const;
  const std::vector<int>& layer_outputs(size_t index) const;

  /// Enqueues `batch` images on buffers of the network's own device and returns; done when the queue is.
  /// Inputs are not checked for NaN. Throws Error(input) on a CPU network, or where a buffer is too small.
  void forward_on_device(const std::vector<DeviceBuffer>& inputs, const std::vector<DeviceBuffer>& outputs,
                         int batch);

  /// Kernels with parameters that support layer `index` here, the present one first. Empty on the CPU.
  std::vector<std::string> candidates(size_t index) const;
  /// The programs of layer `index`, one for each launch. Throws Error(input) on other devices.
  std::vector<KernelProgram> programs(size_t index) const;
  /// Milliseconds of layer `index` with such a kernel by the device's clock, median of `repeats`, on random
  /// operands; `is_equal`: whether its results are those of the kernel in use. Throws Error(input)
  /// for a choice that does not support it, Error(device) when it fails.
  double measure_choice(size_t index, const std::string& choice, int batch, int repeats, bool* is_equal);
  /// The tuning table's line that makes layers like this one use `choice` on this device.
  std::string tuning_line(size_t index, const std::string& choice) const;

  /// For a layer of a network on "gpu+cpu": the minimum of up to `repeats` runs on random content with these
  /// parts (absent: that processor does nothing), whatever the plan says. Allocates, and may compile. Throws
  /// Error(input) for parts that cannot be, or on other devices.
  LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                           const std::optional<OutputPart>& gpu, int repeats);
  /// For a network on "gpu+cpu": the minimum of `repeats` inferences over random content as the plan says, and the
  /// layers' times in the quickest of as many inferences that keep time. Throws Error(input) on other devices.
  PassTimes measure_pass(int repeats);
  /// The launches by which the GPU would compute a part. Throws as measure_layer.
  std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu);
  /// What plans for these two processors are kept under: GPU, driver, instruction set, threads. Empty on one
  /// processor.
  std::string plan_key() const;
  /// The plan in force; without parts on one processor.
  ExecutionPlan plan() const;
  /// Throws Error(input) on one processor.
  CoexecInfo coexec() const;

  /// "cpu:avx512", "gpu:0 NVIDIA H200", "gpu:0 Mali-G610 + cpu:neon".
  std::string device() const;
  /// What a user should know: kernels that failed the self-test at load; a GPU that failed since. This one,
  /// coexec(), memory() and startup() wait for an inference that runs.
  std::vector<std::string> warnings() const;
  StartupInfo startup() const;
  /// The API's objects in use; all null on the CPU. Owned by the network.
  GpuHandles handles() const;

  MemoryInfo memory() const;
  /// JSON, or empty. Not parsed here.
  const std::string& metadata() const;
  /// Name of the instruction set in use, or of the GPU's API ("opencl").
  const char* isa() const;
  int threads() const;

 private:
  class Implementation;
  class Turn;
  explicit Network(std::unique_ptr<Implementation> implementation);
  /// `open` gives the file's bytes; `source` names them in errors.
  template <class Open>
  static Network load_from(const std::string& source, const Options& options, const Open& open);
  std::unique_ptr<Implementation> implementation_;
};

/// "0.1.0".
const char* version();

}  // namespace phonebit::engine
