#include "cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cpu/epilogue_binding.h"

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
    if (storage_.homes().are_planes_of_the_op_before(model, i) && layers_[i - 1]->levels() != nullptr)
      layers_[i - 1]->levels()->bind_planes(context, model.ops[i]);
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

void Executor::run(size_t index, bool as_planes, const Cancellation& cancellation) {
  EpilogueBinding* const levels = layers_[index]->levels();
  if (levels != nullptr) levels->write_planes(as_planes);
  cpu::run_layer(*layers_[index], *pool_, cancellation);
  cancellation.check();
}

void Executor::run_image(const Cancellation& cancellation, std::vector<double>* layer_ms) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const EpilogueBinding* const before = i > 0 ? layers_[i - 1]->levels() : nullptr;
    if (before != nullptr && before->writes_planes()) continue;
    if (layer_ms == nullptr) {
      run(i, true, cancellation);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    run(i, true, cancellation);
    (*layer_ms)[i] += Milliseconds(std::chrono::steady_clock::now() - begin).count();
  }
}

size_t Executor::packed_bytes() const {
  size_t bytes = 0;
  for (const auto& layer : layers_) bytes += layer->packed_bytes();
  return bytes;
}

}  // namespace phonebit::engine::cpu
