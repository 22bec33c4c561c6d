#include "coexec/plan_backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "types/error.h"

namespace phonebit::engine::coexec {

PlanBackend::PlanBackend(const Processors& processors, std::shared_ptr<threads::ThreadPool> pool,
                         Setup& setup, std::string label)
    : processors_(processors),
      model_(processors.model),
      setup_(setup),
      label_(std::move(label)),
      levels_(model_, processors.isa, std::move(pool)) {
  try {
    make_executor();
  } catch (const Error& error) {
    // Drivers may claim to have atomics that their compiler does not know.
    const bool was_our_choice = processors_.options.synchronization == Synchronization::automatic;
    if (error.code() != ErrorCode::device || !was_our_choice ||
        setup_.synchronization != Synchronization::polling)
      throw;
    setup_.wait_by_events(label_, error.what());
    make_executor();
  }
}

void PlanBackend::make_executor() {
  executor_ = nullptr;  // its memory goes before the new one's is taken
  executor_ = std::make_unique<Executor>(processors_, Schedule(model_, setup_.plan), setup_.sharing,
                                         setup_.synchronization);
}

bool PlanBackend::recover(const Error& error) {
  executor_->recover();
  if (setup_.synchronization != Synchronization::polling) return false;
  setup_.wait_by_events(label_, error.what());
  try {
    make_executor();
  } catch (const Error& second) {
    if (second.code() != ErrorCode::device) throw;
    return false;
  }
  setup_.add_warnings(warnings());
  return true;
}

std::vector<const std::byte*> PlanBackend::inputs_of(const std::vector<InputBuffer>& inputs, int image) {
  std::vector<const std::byte*> result;
  levels_.prepare(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(levels_.image(inputs[i], i, image, Cancellation()));
  return result;
}

std::vector<std::byte*> PlanBackend::outputs_of(const std::vector<OutputBuffer>& outputs, int image) const {
  std::vector<std::byte*> result;
  for (size_t i = 0; i < outputs.size(); ++i)
    result.push_back(image_of(outputs[i], model_.tensor(model_.outputs[i]).bytes(), image));
  return result;
}

void PlanBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                          int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  for (int image = 0; image < batch; ++image) {
    if (layer_ms != nullptr) {
      std::vector<double> cpu_us, gpu_us;
      run_timed(inputs, outputs, image, cancellation, cpu_us, gpu_us);
      for (size_t i = 0; i < layer_ms->size(); ++i) (*layer_ms)[i] += 1e-3 * std::max(cpu_us[i], gpu_us[i]);
    } else {
      executor_->run(inputs_of(inputs, image).data(), outputs_of(outputs, image).data(), cancellation);
    }
    // Not inside an image, where one processor would wait for the other: there the CPU skips what is left.
    cancellation.check();
  }
}

void PlanBackend::run_timed(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                            int image, const Cancellation& cancellation, std::vector<double>& cpu_us,
                            std::vector<double>& gpu_us) {
  cpu_us.assign(model_.ops.size(), 0.0);
  gpu_us = cpu_us;
  executor_->run_timed(inputs_of(inputs, image).data(), outputs_of(outputs, image).data(), cancellation,
                       cpu_us, gpu_us);
}

void PlanBackend::activations(const std::vector<InputBuffer>& inputs,
                              const std::vector<OutputBuffer>& tensors, int batch,
                              const Cancellation& cancellation) {
  const auto of_image = [&](size_t tensor, int image) {
    return image_of(tensors[tensor], model_.tensors[tensor].bytes(), image);
  };
  Executor keeping(processors_, Schedule(model_, setup_.plan), setup_.sharing, setup_.synchronization,
                   Reuse::none);
  for (int image = 0; image < batch; ++image) {
    std::vector<std::byte*> out;
    for (const int tensor : model_.outputs) out.push_back(of_image(static_cast<size_t>(tensor), image));
    keeping.run(inputs_of(inputs, image).data(), out.data(), cancellation);
    cancellation.check();
    for (size_t i = 0; i < tensors.size(); ++i) keeping.read(static_cast<int>(i), of_image(i, image));
  }
}

void PlanBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                         const std::vector<OutputBuffer>& results, int batch,
                         const Cancellation& cancellation) {
  std::optional<OutputPart> cpu, gpu;
  for (const PlannedPart& planned : setup_.plan.parts)
    if (planned.layer == static_cast<int>(index))
      (planned.processor == Processor::cpu ? cpu : gpu) = planned.part;
  Executor alone(processors_, Schedule(model_, index, cpu, gpu, 1), setup_.sharing, setup_.synchronization);
  const std::vector<int> read = analysis::tensors_read(model_.ops[index]);
  for (int image = 0; image < batch; ++image) {
    std::vector<const std::byte*> in;
    for (const int tensor : alone.schedule().inputs()) {
      // Where a tensor is listed twice, the later buffer counts.
      const auto last = std::find(read.rbegin(), read.rend(), tensor);
      const auto at = static_cast<size_t>(read.rend() - last) - 1;
      in.push_back(image_of(operands[at], model_.tensor(tensor).bytes(), image));
    }
    std::vector<std::byte*> out;
    for (size_t i = 0; i < results.size(); ++i)
      out.push_back(image_of(results[i], model_.tensor(alone.schedule().outputs()[i]).bytes(), image));
    alone.run(in.data(), out.data(), cancellation);
    cancellation.check();
  }
}

MemoryInfo PlanBackend::memory() const {
  return {executor_->activation_bytes(), executor_->activation_bytes(), executor_->scratch_bytes(),
          executor_->weight_bytes(), model_.file.size()};
}

}  // namespace phonebit::engine::coexec
