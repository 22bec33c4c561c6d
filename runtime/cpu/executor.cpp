#include "cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace phonebit::engine::cpu {

Executor::Executor(const loader::Model& model, const Isa& isa, const Options& options,
                   std::shared_ptr<threads::ThreadPool> pool)
    : budget_(options.max_memory_bytes), storage_(model, budget_), pool_(std::move(pool)) {
  for (size_t output = 0; output < model.outputs.size(); ++output) {
    const auto input = std::find(model.inputs.begin(), model.inputs.end(), model.outputs[output]);
    if (input == model.inputs.end()) continue;
    passed_through_.push_back(
        {static_cast<size_t>(input - model.inputs.begin()), output, model.tensor(*input).bytes()});
  }
  PackingList packing;
  const BuildContext context{model, isa, pool_->threads(), storage_, budget_, packing, options.precision};
  size_t scratch = 0;
  const Cancellation cancellation;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    cancellation.check();
    layers_.push_back(make_layer(context, i));
    scratch = std::max(scratch, layers_.back()->scratch_bytes());
  }
  budget_.take(scratch, "scratch memory");
  scratch_ = memory::AlignedBuffer(scratch, "scratch memory");
  for (const auto& layer : layers_) layer->set_scratch(scratch_.data());
  packing.run(*pool_);
}

void Executor::bind(const std::byte* const* inputs, std::byte* const* outputs) {
  storage_.bind_caller(inputs, outputs);
  for (const PassedThrough& tensor : passed_through_)
    std::memcpy(outputs[tensor.output], inputs[tensor.input], tensor.bytes);
}

void Executor::run_image(const Cancellation& cancellation, std::vector<double>* layer_ms) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layer_ms == nullptr) {
      run_layer(i, cancellation);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    run_layer(i, cancellation);
    (*layer_ms)[i] += Milliseconds(std::chrono::steady_clock::now() - begin).count();
  }
}

size_t Executor::packed_bytes() const {
  size_t bytes = 0;
  for (const auto& layer : layers_) bytes += layer->packed_bytes();
  return bytes;
}

}  // namespace phonebit::engine::cpu
