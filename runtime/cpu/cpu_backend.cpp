#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "cpu/i8_arithmetic.h"

namespace phonebit::engine::cpu {

CpuBackend::CpuBackend(const loader::Model& model, const Isa& isa, const Options& options,
                       std::shared_ptr<threads::ThreadPool> pool)
    : model_(model), isa_(isa), options_(options), all_threads_(model, isa, options, pool) {}

void CpuBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                         int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  int image = 0;
#ifndef PHONEBIT_FOR_PHONES
  if (layer_ms == nullptr) image = run_side_by_side(inputs, outputs, batch, cancellation);
#endif
  all_threads_.levels.prepare(inputs);
  for (; image < batch; ++image) {
    all_threads_.bind(inputs, outputs, image, cancellation);
    all_threads_.executor.run_image(cancellation, layer_ms);
  }
}

#ifndef PHONEBIT_FOR_PHONES  // which have frames, not batches
int CpuBackend::run_side_by_side(const std::vector<InputBuffer>& inputs,
                                 const std::vector<OutputBuffer>& outputs, int batch,
                                 const Cancellation& cancellation) {
  const int threads = pool().threads(), images = batch / threads * threads;
  if (threads == 1 || images == 0 || !make_lanes()) return 0;
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->levels.prepare(inputs);
  pool().parallel_for(images, [&](int image) {
    // The lane that this thread had before, unless it helps another one.
    size_t at = static_cast<size_t>(image) * lanes_.size() / static_cast<size_t>(images);
    while (lanes_[at]->is_taken.exchange(true, std::memory_order_acquire)) at = (at + 1) % lanes_.size();
    Lane& lane = *lanes_[at];
    try {
      lane.bind(inputs, outputs, image, cancellation);
      lane.executor.run_image(cancellation, nullptr);
    } catch (...) {
      // Cancelled, which alone is thrown here: told below.
    }
    lane.is_taken.store(false, std::memory_order_release);
  });
  cancellation.check();
  return images;
}

bool CpuBackend::make_lanes() {
  const auto threads = static_cast<size_t>(pool().threads());
  const Executor& executor = all_threads_.executor;
  if (lacks_room_for_lanes_) return false;
  if (lanes_.size() == threads) return true;
  Options options = options_;
  options.max_memory_bytes = executor.bytes_left() / threads;
  const auto alone = std::make_shared<threads::ThreadPool>(1);
  try {
    std::vector<std::unique_ptr<Lane>> lanes;
    // If not, the first lane packs them for all.
    const PackedWeights* packed = executor.suits_one_thread() ? &executor.packed_weights() : nullptr;
    while (lanes.size() < threads) {
      lanes.push_back(std::make_unique<Lane>(model_, isa_, options, alone, packed));
      if (packed == nullptr) packed = &lanes.front()->executor.packed_weights();
    }
    lanes_ = std::move(lanes);
  } catch (const Error&) {
    lacks_room_for_lanes_ = true;
  }
  return !lacks_room_for_lanes_;
}
#endif

void CpuBackend::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                             int batch, const Cancellation& cancellation) {
  std::vector<OutputBuffer> terminals;
  for (const int tensor : model_.outputs) terminals.push_back(tensors[static_cast<size_t>(tensor)]);
  all_threads_.levels.prepare(inputs);
  for (int image = 0; image < batch; ++image) {
    all_threads_.bind(inputs, terminals, image, cancellation);
    for (const int tensor : model_.inputs) copy_out(tensor, tensors[static_cast<size_t>(tensor)], image);
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      all_threads_.executor.run_layer(i, cancellation);
      for (const int tensor : analysis::tensors_written(model_.ops[i]))
        copy_out(tensor, tensors[static_cast<size_t>(tensor)], image);
    }
  }
}

void CpuBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                        const std::vector<OutputBuffer>& results, int batch,
                        const Cancellation& cancellation) {
  const std::vector<int> read = analysis::tensors_read(model_.ops[index]);
  const std::vector<int> written = analysis::tensors_written(model_.ops[index]);
  const OwnTerminals own(model_, 1);
  all_threads_.bind(own.inputs, own.outputs, 0, cancellation);
  // All tensors of one op live at the same time, so each has memory of its own.
  for (int image = 0; image < batch; ++image) {
    cancellation.check();
    for (size_t i = 0; i < operands.size(); ++i) copy_in(read[i], operands[i], image);
    all_threads_.executor.run_layer(index, cancellation);
    for (size_t i = 0; i < results.size(); ++i) copy_out(written[i], results[i], image);
  }
}

std::vector<std::string> CpuBackend::warnings() const {
  if (options_.precision != Precision::fast) return {};
  const std::string text = kept_exact_text(model_);
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

MemoryInfo CpuBackend::memory() const {
  const Executor& executor = all_threads_.executor;
  return {executor.storage().arena_bytes(), executor.storage().lower_bound_bytes(), executor.scratch_bytes(),
          executor.packed_bytes(), model_.file.size()};
}

void CpuBackend::copy_in(int tensor, const InputBuffer& from, int image) {
  const size_t bytes = model_.tensor(tensor).bytes();
  std::memcpy(all_threads_.executor.address(tensor), image_of(from, bytes, image), bytes);
}

void CpuBackend::copy_out(int tensor, const OutputBuffer& to, int image) {
  const size_t bytes = model_.tensor(tensor).bytes();
  std::byte* const target = image_of(to, bytes, image);
  if (target != all_threads_.executor.address(tensor))
    std::memcpy(target, all_threads_.executor.address(tensor), bytes);
}

}  // namespace phonebit::engine::cpu
