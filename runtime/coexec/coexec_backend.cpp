#include "coexec/coexec_backend.h"

#include <algorithm>
#include <cstring>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "analysis/plan_check.h"
#include "backend/host_buffers.h"
#include "coexec/pass_measurement.h"
#include "cpu/cpu_backend.h"
#include "cpu/i8_arithmetic.h"
#include "opencl/opencl_backend.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

using loader::Model;

namespace {

ExecutionPlan everything_on_gpu(const Model& model, const std::string& device) {
  ExecutionPlan plan{device, "user", 0.0, {}};
  for (size_t i = 0; i < model.ops.size(); ++i)
    plan.parts.push_back({static_cast<int>(i), Processor::gpu, static_cast<int>(i),
                          analysis::whole_part(model, model.ops[i])});
  return plan;
}

Sharing choose_sharing(const opencl::Device& device, Sharing wanted) {
  if (wanted == Sharing::svm && !device.has_svm_fine)
    fail(ErrorCode::device,
         "sharing 'svm': %s has no fine-grained shared virtual memory; use 'map', 'copy' or 'auto'",
         device.name.c_str());
  if (wanted != Sharing::automatic) return wanted;
  if (device.has_svm_fine) return Sharing::svm;
  return device.has_unified_memory ? Sharing::map : Sharing::copy;
}

Synchronization choose_synchronization(const opencl::Device& device, Synchronization wanted) {
  const bool can_poll = device.has_svm_fine && device.has_svm_atomics;
  if (wanted == Synchronization::polling && !can_poll)
    fail(
        ErrorCode::device,
        "synchronization 'polling': %s has no fine-grained shared virtual memory with atomics; use 'events', "
        "'user_events' or 'auto'",
        device.name.c_str());
  if (wanted != Synchronization::automatic) return wanted;
  // Where threads of a processor are the device, a kernel that polls wakes all of them for nothing.
  const bool is_pool = !device.is_gpu && device.compute_units > 1;
  return can_poll && !is_pool ? Synchronization::polling : Synchronization::events;
}

}  // namespace

CoexecBackend::CoexecBackend(const Model& model, std::shared_ptr<opencl::Context> context,
                             std::string gpu_label, const cpu::Isa& isa,
                             std::shared_ptr<threads::ThreadPool> pool, const Options& options)
    : model_(model),
      context_(std::move(context)),
      gpu_label_(std::move(gpu_label)),
      label_(gpu_label_ + " + cpu:" + isa.name),
      isa_(isa),
      options_(options),
      pool_(std::move(pool)),
      levels_(model, isa, pool_),
      programs_(context_, opencl::cache_directory(options.cache_directory)),
      sharing_(choose_sharing(context_->device(), options.sharing)),
      synchronization_(choose_synchronization(context_->device(), options.synchronization)) {
  const std::string key = plan_key();
  const auto own = std::find_if(model.plans.begin(), model.plans.end(),
                                [&](const ExecutionPlan& plan) { return plan.device == key; });
  if (options.plan) {
    plan_ = options.plan->parts.empty() ? everything_on_gpu(model, key) : *options.plan;
  } else if (own != model.plans.end()) {
    plan_ = *own;
    is_tried_ = options.trial && options.precision == Precision::exact && !options.profiling;
  } else {
    plan_ = everything_on_gpu(model, key);
    warnings_.push_back(
        format_text("the file has no plan for '%s', so the GPU does everything; "
                    "'phonebit plan' makes one",
                    key.c_str()));
  }
  analysis::check_plan(model, plan_);
  if (const std::string text = cpu::kept_exact_text(model);
      options.precision == Precision::fast && !text.empty())
    warnings_.push_back(text);
  uses_gpu_ = std::any_of(plan_.parts.begin(), plan_.parts.end(),
                          [](const PlannedPart& part) { return part.processor == Processor::gpu; });
  runner_ = planned_runner();  // a CPU's layers of its own would only cost time
  if (is_tried_) kept_verdict_.emplace(model, key, options);
  if (take_kept_verdict()) return;
  make(runner_);
  start_trial();
}

void CoexecBackend::make(Runner runner) {
  if (runner == Runner::plan)
    make_first_executor();
  else
    make_alone(runner);
}

void CoexecBackend::make_first_executor() {
  try {
    make_executor();
  } catch (const Error& error) {
    // Drivers may claim to have atomics that their compiler does not know.
    const bool was_our_choice = options_.synchronization == Synchronization::automatic;
    if (error.code() != ErrorCode::device || !was_our_choice || synchronization_ != Synchronization::polling)
      throw;
    stop_polling(error);
    make_executor();
  }
}

void CoexecBackend::stop_polling(const Error& error) {
  warnings_.push_back(format_text("%s: %s; the processors wait for each other by events from now on",
                                  label_.c_str(), error.what()));
  synchronization_ = Synchronization::events;
}

std::string CoexecBackend::plan_key() const {
  return format_text("%s + cpu:%s x%d", context_->device().key().c_str(), isa_.name, pool_->threads());
}

void CoexecBackend::make_executor() {
  executor_ = nullptr;  // its memory goes before the new one's is taken
  executor_ = std::make_unique<Executor>(processors(), Schedule(model_, plan_), sharing_, synchronization_);
  add_warnings(executor_->gpu_layers().warnings());
}

void CoexecBackend::add_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
      warnings_.push_back(warning);
}

void CoexecBackend::make_alone(Runner runner) {
  if (alone(runner) != nullptr) return;
  if (runner == Runner::cpu)
    cpu_alone_ = std::make_unique<cpu::CpuBackend>(model_, isa_, options_, pool_);
  else
    gpu_alone_ = std::make_unique<opencl::OpenClBackend>(model_, context_, gpu_label_, pool_, options_);
  add_warnings(alone(runner)->warnings());
}

Backend* CoexecBackend::alone(Runner runner) const {
  return runner == Runner::cpu ? cpu_alone_.get() : runner == Runner::gpu ? gpu_alone_.get() : nullptr;
}

template <class Body>
void CoexecBackend::with_recovery(const Body& body) {
  // A few times at most: without a rival on trial, from polling to events, from the GPU to the CPU.
  for (;;) {
    try {
      return body();
    } catch (const Error& error) {
      const bool has_gpu = trial_ || runner_ != Runner::cpu;
      if (error.code() != ErrorCode::device || !has_gpu) throw;
      recover(error);
    }
  }
}

void CoexecBackend::recover(const Error& error) {
  const bool has_plan_failed = runner_ == Runner::plan && (!trial_ || trial_->next() == Runner::plan);
  if (trial_) {
    trial_.reset();
    leave_to(runner_);
    is_tried_ = has_plan_failed;  // a rival that fails would fail again
    if (!has_plan_failed) return;
  }
  if (has_plan_failed) executor_->recover();
  if (has_plan_failed && synchronization_ == Synchronization::polling) {
    stop_polling(error);
    try {
      make_executor();
      return start_trial();
    } catch (const Error& second) {
      if (second.code() != ErrorCode::device) throw;
    }
  }
  warnings_.push_back(
      format_text("%s: %s; the CPU does everything from now on", label_.c_str(), error.what()));
  is_tried_ = false;
  verdict_warning_.clear();
  make_alone(Runner::cpu);
  leave_to(Runner::cpu);
}

std::vector<std::string> CoexecBackend::warnings() const {
  std::vector<std::string> result = warnings_;
  if (!verdict_warning_.empty()) result.push_back(verdict_warning_);
  return result;
}

std::vector<const std::byte*> CoexecBackend::inputs_of(const std::vector<InputBuffer>& inputs, int image) {
  std::vector<const std::byte*> result;
  levels_.prepare(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(levels_.image(inputs[i], i, image, Cancellation()));
  return result;
}

std::vector<std::byte*> CoexecBackend::outputs_of(const std::vector<OutputBuffer>& outputs, int image) const {
  std::vector<std::byte*> result;
  for (size_t i = 0; i < outputs.size(); ++i)
    result.push_back(image_of(outputs[i], model_.tensor(model_.outputs[i]).bytes(), image));
  return result;
}

void CoexecBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                            int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  with_recovery([&] {
    if (is_tried_ && layer_ms == nullptr)
      run_tried(inputs, outputs, batch, cancellation);
    else
      run(runner_, inputs, outputs, batch, cancellation, layer_ms);
  });
}

void CoexecBackend::run(Runner runner, const std::vector<InputBuffer>& inputs,
                        const std::vector<OutputBuffer>& outputs, int batch, const Cancellation& cancellation,
                        std::vector<double>* layer_ms) {
  if (Backend* const backend = alone(runner))
    return backend->forward(inputs, outputs, batch, cancellation, layer_ms);
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

void CoexecBackend::run_timed(const std::vector<InputBuffer>& inputs,
                              const std::vector<OutputBuffer>& outputs, int image,
                              const Cancellation& cancellation, std::vector<double>& cpu_us,
                              std::vector<double>& gpu_us) {
  cpu_us.assign(model_.ops.size(), 0.0);
  gpu_us = cpu_us;
  executor_->run_timed(inputs_of(inputs, image).data(), outputs_of(outputs, image).data(), cancellation,
                       cpu_us, gpu_us);
}

void CoexecBackend::activations(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& tensors, int batch,
                                const Cancellation& cancellation) {
  const auto of_image = [&](size_t tensor, int image) {
    return image_of(tensors[tensor], model_.tensors[tensor].bytes(), image);
  };
  with_recovery([&] {
    if (Backend* const backend = alone()) return backend->activations(inputs, tensors, batch, cancellation);
    Executor keeping(processors(), Schedule(model_, plan_), sharing_, synchronization_, Reuse::none);
    for (int image = 0; image < batch; ++image) {
      std::vector<std::byte*> out;
      for (const int tensor : model_.outputs) out.push_back(of_image(static_cast<size_t>(tensor), image));
      keeping.run(inputs_of(inputs, image).data(), out.data(), cancellation);
      cancellation.check();
      for (size_t i = 0; i < tensors.size(); ++i) keeping.read(static_cast<int>(i), of_image(i, image));
    }
  });
}

void CoexecBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                           const std::vector<OutputBuffer>& results, int batch,
                           const Cancellation& cancellation) {
  if (Backend* const backend = alone()) return backend->run_op(index, operands, results, batch, cancellation);
  std::optional<OutputPart> cpu, gpu;
  for (const PlannedPart& planned : plan_.parts)
    if (planned.layer == static_cast<int>(index))
      (planned.processor == Processor::cpu ? cpu : gpu) = planned.part;
  Executor alone(processors(), Schedule(model_, index, cpu, gpu, 1), sharing_, synchronization_);
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

std::string CoexecBackend::kernel(size_t index) const {
  if (const Backend* const backend = alone()) return backend->kernel(index);
  return executor_->kernel(index);
}

MemoryInfo CoexecBackend::memory() const {
  MemoryInfo sum{};
  if (executor_)
    sum = {executor_->activation_bytes(), executor_->activation_bytes(), executor_->scratch_bytes(),
           executor_->weight_bytes(), 0};
  for (const Runner runner : {Runner::cpu, Runner::gpu}) {
    const Backend* const backend = alone(runner);
    if (backend == nullptr) continue;
    const MemoryInfo memory = backend->memory();
    sum.arena_bytes += memory.arena_bytes;
    sum.lower_bound_bytes += memory.lower_bound_bytes;
    sum.scratch_bytes += memory.scratch_bytes;
    sum.weight_bytes += memory.weight_bytes;
  }
  sum.file_bytes = model_.file.size();
  return sum;
}

CoexecInfo CoexecBackend::info() const {
  return {sharing_,           synchronization_, runner_ == Runner::cpu, runner_ == Runner::gpu,
          trial_.has_value(), trial_ms_[0],     trial_ms_[1],           trial_ms_[2]};
}

LayerTimes CoexecBackend::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                        const std::optional<OutputPart>& gpu, int repeats,
                                        const Cancellation& cancellation) {
  std::unique_ptr<LayerMeasurement> measurement = std::move(measurement_);
  if (!measurement || measurement->index() != index) {
    measurement.reset();  // before the next one takes memory
    measurement = std::make_unique<LayerMeasurement>(processors(), index, sharing_, synchronization_);
  }
  const LayerTimes times = measurement->measure(cpu, gpu, repeats, cancellation);
  measurement_ = std::move(measurement);  // not one that failed
  return times;
}

PassTimes CoexecBackend::measure_pass(int repeats, const Cancellation& cancellation) {
  try {
    return coexec::measure_pass(
        model_, repeats, [&](const auto& inputs, const auto& outputs, PassTimes* parts) {
          cancellation.check();
          if (parts == nullptr) return run(runner_, inputs, outputs, 1, cancellation, nullptr);
          if (runner_ == Runner::plan)
            return run_timed(inputs, outputs, 0, cancellation, parts->cpu, parts->gpu);
          std::vector<double>& alone = runner_ == Runner::cpu ? parts->cpu : parts->gpu;
          run(runner_, inputs, outputs, 1, cancellation, &alone);
          for (double& us : alone) us *= 1e3;  // of milliseconds
        });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device) recover(error);
    throw;
  }
}

std::vector<DispatchInfo> CoexecBackend::dispatch(size_t index, const OutputPart& gpu) {
  Executor layer(processors(), Schedule(model_, index, std::nullopt, gpu, 1), sharing_, synchronization_);
  std::vector<DispatchInfo> result;
  for (const opencl::Dispatch& launch : layer.gpu_layers().dispatch(index)) {
    DispatchInfo info{launch.kernel, launch.choice, {}, {}};
    std::copy(launch.global.begin(), launch.global.end(), info.global);
    std::copy(launch.local.begin(), launch.local.end(), info.local);
    result.push_back(std::move(info));
  }
  return result;
}

}  // namespace phonebit::engine::coexec
