// Runs a model on the CPU, one image at a time.
#pragma once

#include <memory>
#include <vector>

#include "cpu/layer.h"
#include "cpu/storage.h"
#include "threads/thread_pool.h"
#include "types/cancellation.h"

namespace phonebit::engine::cpu {

/// All layers of one model, ready to run. Everything is allocated at construction; running allocates nothing.
/// One caller at a time. `model` must stay where it is for the life of the executor.
class Executor {
 public:
  /// `packed`: packed_weights() of an executor of the same model, instruction set and precision, to share.
  /// Throws Error when memory is short.
  Executor(const loader::Model& model, const Isa& isa, const Options& options,
           std::shared_ptr<threads::ThreadPool> pool, const PackedWeights* packed = nullptr);

  /// Sets the buffers of the next image: one per network input and output. Outputs that are inputs are filled
  /// here.
  void bind(const std::byte* const* inputs, std::byte* const* outputs);
  /// Runs one layer on what its operands hold. Throws Error(cancelled).
  void run_layer(size_t index, const Cancellation& cancellation) {
    run(*layers_[index], false, cancellation);
  }
  /// Runs all layers on the bound image. Adds their milliseconds to `layer_ms` where that is not null: those of two
  /// that run as one to the second's. Levels of which only the planes are read may not be written, nor the sums of a
  /// plane alone. Throws Error(cancelled).
  void run_image(const Cancellation& cancellation, std::vector<double>* layer_ms);

  /// Where a tensor lies; see Storage::address.
  std::byte* address(int tensor) const { return storage_.address(tensor); }
  const Layer& layer(size_t index) const { return *layers_[index]; }
  const Storage& storage() const { return storage_; }
  size_t scratch_bytes() const { return scratch_.size(); }
  size_t packed_bytes() const;
  /// Of Options::max_memory_bytes.
  uint64_t bytes_left() const { return budget_.left(); }
  const PackedWeights& packed_weights() const { return packed_weights_; }
  /// Whether an executor on one thread can share them.
  bool suits_one_thread() const { return suits_one_thread_; }
  threads::ThreadPool& pool() { return *pool_; }

 private:
  struct PassedThrough {
    size_t input, output, bytes;
  };

  void join_planes(const BuildContext& context, size_t index);
  void run(Layer& layer, bool as_planes, const Cancellation& cancellation);

  analysis::MemoryBudget budget_;
  Storage storage_;
  PackedWeights packed_weights_;
  bool suits_one_thread_;
  std::vector<PassedThrough> passed_through_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<Layer>> pairs_;  // of planes
  std::vector<Layer*> of_image_;               // what a whole image runs for each op, null: nothing
  memory::AlignedBuffer scratch_;
  std::shared_ptr<threads::ThreadPool> pool_;
};

}  // namespace phonebit::engine::cpu
