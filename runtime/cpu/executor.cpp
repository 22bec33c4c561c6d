#include "cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cpu/epilogue_binding.h"

namespace phonebit::engine::cpu {

Executor::Executor(const loader::Model& model, const Isa& isa, const Options& options,
                   std::shared_ptr<threads::ThreadPool> pool, const PackedWeights* packed)
    : budget_(options.max_memory_bytes), storage_(model, budget_), pool_(std::move(pool)) {
  for (size_t output = 0; output < model.outputs.size(); ++output) {
    const auto input = std::find(model.inputs.begin(), model.inputs.end(), model.outputs[output]);
    if (input == model.inputs.end()) continue;
    passed_through_.push_back(
        {static_cast<size_t>(input - model.inputs.begin()), output, model.tensor(*input).bytes()});
  }
  PackingList packing(packed);
  const BuildContext context{model, isa, pool_->threads(), storage_, budget_, packing, options.precision};
  const Cancellation cancellation;
  of_image_ = std::vector<Layer*>(model.ops.size());
  for (size_t i = 0; i < model.ops.size(); ++i) {
    cancellation.check();
    layers_.push_back(make_layer(context, i));
    of_image_[i] = layers_[i].get();
    if (storage_.homes().is_pair_of_planes(i)) join_planes(context, i);
    if (!storage_.homes().are_planes_of_the_op_before(model, i)) continue;
    EpilogueBinding* const levels = of_image_[i - 1]->levels();
    if (levels != nullptr && levels->bind_planes(context, model.ops[i])) of_image_[i] = nullptr;
  }
  size_t scratch = 0;
  for (const auto* layers : {&layers_, &pairs_})
    for (const auto& layer : *layers) scratch = std::max(scratch, layer->scratch_bytes());
  budget_.take(scratch, "scratch memory");
  scratch_ = memory::AlignedBuffer(scratch, "scratch memory");
  for (const auto* layers : {&layers_, &pairs_})
    for (const auto& layer : *layers) layer->set_scratch(scratch_.data());
  packed_weights_ = packing.run(*pool_);
  suits_one_thread_ = !packing.is_for_many_threads();
}

void Executor::bind(const std::byte* const* inputs, std::byte* const* outputs) {
  storage_.bind_caller(inputs, outputs);
  for (const PassedThrough& tensor : passed_through_)
    std::memcpy(outputs[tensor.output], inputs[tensor.input], tensor.bytes);
}

void Executor::join_planes(const BuildContext& context, size_t index) {
  std::unique_ptr<Layer> pair = make_plane_pair(context, index, *layers_[index - 1], *layers_[index]);
  if (pair == nullptr) return;
  of_image_[index - 1] = nullptr;
  of_image_[index] = pair.get();
  pairs_.push_back(std::move(pair));
}

void Executor::run(Layer& layer, bool as_planes, const Cancellation& cancellation) {
  if (layer.levels() != nullptr) layer.levels()->write_planes(as_planes);
  cpu::run_layer(layer, *pool_, cancellation);
  cancellation.check();
}

void Executor::run_image(const Cancellation& cancellation, std::vector<double>* layer_ms) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (of_image_[i] == nullptr) continue;
    if (layer_ms == nullptr) {
      run(*of_image_[i], true, cancellation);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    run(*of_image_[i], true, cancellation);
    (*layer_ms)[i] += Milliseconds(std::chrono::steady_clock::now() - begin).count();
  }
}

size_t Executor::packed_bytes() const {
  size_t bytes = 0;
  for (const auto& layer : layers_) bytes += layer->packed_bytes();
  return bytes;
}

}  // namespace phonebit::engine::cpu
