// A device as a Backend: chooses kernels, then drives an Executor.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/level_model.h"
#include "gpu/executor.h"
#include "gpu/staging.h"
#include "types/layer.h"

namespace phonebit::engine::gpu {

class GpuBackend final : public Backend, public GpuAbilities {
 public:
  /// `model` must stay where it is. `label`: "gpu:0 NVIDIA H200". `pool` copies inputs and outputs. Throws
  /// Error(device).
  GpuBackend(const loader::Model& model, std::shared_ptr<Device> device, std::string label,
             std::shared_ptr<threads::ThreadPool> pool, const Options& options);

  bool checks_values(int batch) const override { return batch <= executor_.largest_batch(); }
  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs, int batch,
               const Cancellation& cancellation, std::vector<double>* layer_ms) override;
  std::unique_ptr<Inference> begin(const std::vector<InputBuffer>& inputs,
                                   const std::vector<OutputBuffer>& outputs, int batch,
                                   const Cancellation& cancellation) override;
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch, const Cancellation& cancellation) override;
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch, const Cancellation& cancellation) override;
  std::string kernel(size_t index) const override { return executor_.layers().layer(index).kernel; }
  MemoryInfo memory() const override;
  std::string device() const override { return label_; }
  const char* isa() const override { return device_->facts().api; }
  threads::ThreadPool& pool() override { return *pool_; }
  std::vector<std::string> warnings() const override { return executor_.layers().warnings(); }

  GpuAbilities* gpu() override { return this; }
  void forward_on_device(const std::vector<DeviceBuffer>& inputs, const std::vector<DeviceBuffer>& outputs,
                         int batch) override;
  std::vector<std::string> candidates(size_t index) const override;
  std::vector<KernelProgram> programs(size_t index) const override;
  double measure_choice(size_t index, const std::string& choice, int batch, int repeats, bool* is_equal,
                        const Cancellation& cancellation) override;
  std::string tuning_line(size_t index, const std::string& choice) const override;
  StartupInfo startup() const override;
  GpuHandles handles() const override { return device_->handles(); }

 private:
  /// Calls body(first image, images) for runs of at most largest_batch() images, prepared for each. Throws
  /// Error(cancelled) before a run.
  template <class Body>
  void in_batches(int batch, const Cancellation& cancellation, const Body& body);
  /// Prepares the executor, whose memory inferences that were begun may still use.
  void prepare(int batch);
  /// Runs body, and empties all queues if it throws: commands may still use memory that goes.
  template <class Body>
  void guarded(const Body& body);

  /// An input or output on its way between a caller and the device.
  struct Way {
    Way(std::shared_ptr<Device> device, Staging::Way way) : staging(std::move(device), way) {}
    std::unique_ptr<DeviceMemory>
        own;  // on the device: an input's levels, or what other inferences must not overwrite
    size_t own_bytes = 0;
    Staging staging;  // ends first: it may have mapped `own`
  };
  /// The ways of one inference.
  struct Lane {
    std::vector<Way> inputs, outputs;
  };
  class BegunInference;
  /// An input's values from its levels.
  struct Levels {
    Levels(const loader::Tensor& input, const Preprocessing& rule, std::shared_ptr<Device> device,
           ProgramCache& programs, const std::string& cache_directory);
    LevelModel level_model;
    Executor executor;
  };

  void forward_in_pieces(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                         int batch, const Cancellation& cancellation);
  /// begin() for images of a batch.
  std::unique_ptr<Inference> begin_images(const std::vector<InputBuffer>& inputs,
                                          const std::vector<OutputBuffer>& outputs, int first, int images,
                                          const Cancellation& cancellation);
  std::unique_ptr<Lane> free_lane();
  const DeviceMemory& own_memory(Way& way, size_t bytes);
  /// Images [begin, end) of an inference over `images` ones, which are the caller's from `first` on.
  struct Piece {
    int first, images, begin, end;
  };
  /// Enqueues copies of all inputs on `queue`: to the network's own memory, or, for levels and where the lane
  /// `is_apart` from it, to the lane's. Throws Error(input) for values that are not finite.
  void upload_inputs(Lane& lane, Queue& queue, const std::vector<InputBuffer>& inputs, const Piece& piece,
                     bool is_apart);
  /// Enqueues what brings the inputs in the lane's memory to the network's.
  void enter_inputs(Lane& lane, const std::vector<InputBuffer>& inputs, const Piece& piece, bool is_apart);
  /// Enters inputs and enqueues the first layer, some images at a time, so that it computes while the next ones
  /// are copied.
  void begin_in_pieces(Lane& lane, const std::vector<InputBuffer>& inputs, int first, int images,
                       const Cancellation& cancellation);
  /// In how many pieces; 1: it is better to copy all at once.
  int pieces_of(const std::vector<InputBuffer>& inputs, int images) const;
  void make_queues();

  const loader::Model& model_;
  std::shared_ptr<Device> device_;
  std::string label_;
  ProgramCache programs_;
  Executor executor_;
  std::shared_ptr<threads::ThreadPool> pool_;
  std::string cache_directory_;
  bool can_replay_;
  std::vector<std::unique_ptr<Levels>> levels_;  // of each input; null before it gets any
  std::vector<std::unique_ptr<Lane>> free_lanes_;
  std::unique_ptr<Queue> upload_queue_, download_queue_;     // of inferences that are begun
  std::atomic<int> begun_{0};                                // inferences; any thread may drop one
  std::vector<std::unique_ptr<DeviceMemory>> caller_parts_;  // views of callers' buffers
};

/// For each op and shape class of the built-in table, the choice that comes first on a device.
std::vector<std::pair<std::string, std::string>> table_choices(const DeviceFacts& device);

}  // namespace phonebit::engine::gpu
