#include "coexec/coexec_backend.h"

#include <algorithm>
#include <cstring>

#include "fail.h"
#include "host_buffers.h"
#include "lowering/op_part.h"
#include "lowering/op_tensors.h"
#include "lowering/plan_check.h"
#include "network_setup.h"

namespace phonebit::coexec {

using loader::Model;

namespace {

ExecutionPlan everything_on_gpu(const Model& model, const std::string& device) {
  ExecutionPlan plan{device, "user", 0.0, {}};
  for (size_t i = 0; i < model.ops.size(); ++i)
    plan.parts.push_back({0, Processor::gpu, static_cast<int>(i), lowering::whole_part(model, model.ops[i])});
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
  return can_poll ? Synchronization::polling : Synchronization::events;
}

}  // namespace

CoexecBackend::CoexecBackend(const Model& model, std::shared_ptr<opencl::Context> context,
                             std::string gpu_label, const cpu::Isa& isa, const Options& options)
    : model_(model),
      context_(std::move(context)),
      label_(std::move(gpu_label) + " + cpu:" + isa.name),
      isa_(isa),
      options_(options),
      pool_(make_pool(options)),
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
  } else {
    plan_ = everything_on_gpu(model, key);
    warnings_.push_back(
        format_text("the file has no plan for '%s', so the GPU does everything; "
                    "'phonebit plan' makes one",
                    key.c_str()));
  }
  lowering::check_plan(model, plan_);
  const bool uses_gpu = std::any_of(plan_.parts.begin(), plan_.parts.end(),
                                    [](const PlannedPart& part) { return part.processor == Processor::gpu; });
  if (!uses_gpu) {  // a layer of its own for each processor would only cost time
    cpu_alone_ = std::make_unique<cpu::CpuBackend>(model_, isa_, options_);
    return;
  }
  try {
    make_executor();
  } catch (const Error& error) {
    // Drivers may claim to have atomics that their compiler does not know.
    const bool was_our_choice = options.synchronization == Synchronization::automatic;
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
  return format_text("%s + cpu:%s x%d", context_->device().key().c_str(), isa_.name, pool_.threads());
}

void CoexecBackend::make_executor() {
  executor_ = nullptr;  // its memory goes before the new one's is taken
  executor_ = std::make_unique<Executor>(processors(), Schedule(model_, plan_), sharing_, synchronization_);
  for (const std::string& warning : executor_->gpu_layers().warnings())
    if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
      warnings_.push_back(warning);
}

template <class Body>
void CoexecBackend::with_recovery(const Body& body) {
  // At most twice: from polling to events, from the GPU to the CPU.
  while (!is_on_cpu_alone()) {
    try {
      return body();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::device) throw;
      recover(error);
    }
  }
}

void CoexecBackend::recover(const Error& error) {
  executor_->recover();
  if (synchronization_ == Synchronization::polling) {
    stop_polling(error);
    try {
      return make_executor();
    } catch (const Error& second) {
      if (second.code() != ErrorCode::device) throw;
    }
  }
  warnings_.push_back(
      format_text("%s: %s; the CPU does everything from now on", label_.c_str(), error.what()));
  cpu_alone_ = std::make_unique<cpu::CpuBackend>(model_, isa_, options_);
}

std::vector<const std::byte*> CoexecBackend::inputs_of(const std::vector<InputBuffer>& inputs,
                                                       int image) const {
  std::vector<const std::byte*> result;
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(image_of(inputs[i], model_.tensor(model_.inputs[i]).bytes(), image));
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
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  for (int image = 0; image < batch && !is_on_cpu_alone(); ++image) {
    // Not inside an image: there one processor would wait for the other.
    cancellation.check();
    if (layer_ms != nullptr) {
      with_recovery([&] { run_timed(inputs, outputs, image, *layer_ms); });
      continue;
    }
    const std::vector<const std::byte*> in = inputs_of(inputs, image);
    const std::vector<std::byte*> out = outputs_of(outputs, image);
    with_recovery([&] { executor_->run(in.data(), out.data()); });
  }
  // All of the batch again: images before the failure keep their results, which are the same bits.
  if (is_on_cpu_alone()) cpu_alone_->forward(inputs, outputs, batch, cancellation, layer_ms);
}

void CoexecBackend::run_timed(const std::vector<InputBuffer>& inputs,
                              const std::vector<OutputBuffer>& outputs, int image,
                              std::vector<double>& layer_ms) {
  std::vector<double> cpu_us(model_.ops.size(), 0.0), gpu_us(model_.ops.size(), 0.0);
  executor_->run_timed(inputs_of(inputs, image).data(), outputs_of(outputs, image).data(), cpu_us, gpu_us);
  for (size_t i = 0; i < layer_ms.size(); ++i) layer_ms[i] += 1e-3 * std::max(cpu_us[i], gpu_us[i]);
}

std::vector<double> CoexecBackend::profile(const std::vector<InputBuffer>& inputs, int batch, int repeats,
                                           const Cancellation& cancellation) {
  if (is_on_cpu_alone()) return cpu_alone_->profile(inputs, batch, repeats, cancellation);
  const OwnTerminals own(model_, batch);
  std::vector<double> result(model_.ops.size(), 0.0);
  for (int image = 0; image < batch; ++image) {
    std::vector<std::vector<double>> times(model_.ops.size());
    for (int repeat = -1; repeat < repeats; ++repeat) {  // -1: the warm-up
      cancellation.check();
      std::vector<double> of_pass(model_.ops.size(), 0.0);
      run_timed(inputs, own.outputs, image, of_pass);
      for (size_t i = 0; repeat >= 0 && i < times.size(); ++i) times[i].push_back(of_pass[i]);
    }
    for (size_t i = 0; i < times.size(); ++i) result[i] += median(std::move(times[i]));
  }
  return result;
}

void CoexecBackend::activations(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& tensors, int batch,
                                const Cancellation& cancellation) {
  const auto of_image = [&](size_t tensor, int image) {
    return image_of(tensors[tensor], model_.tensors[tensor].bytes(), image);
  };
  for (int image = 0; image < batch && !is_on_cpu_alone(); ++image) {
    cancellation.check();
    const std::vector<const std::byte*> in = inputs_of(inputs, image);
    std::vector<std::byte*> out;
    for (const int tensor : model_.outputs) out.push_back(of_image(static_cast<size_t>(tensor), image));
    with_recovery([&] {
      executor_->run(in.data(), out.data());
      for (size_t i = 0; i < tensors.size(); ++i) executor_->read(static_cast<int>(i), of_image(i, image));
    });
  }
  if (is_on_cpu_alone()) cpu_alone_->activations(inputs, tensors, batch, cancellation);
}

void CoexecBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                           const std::vector<OutputBuffer>& results, int batch,
                           const Cancellation& cancellation) {
  if (is_on_cpu_alone()) return cpu_alone_->run_op(index, operands, results, batch, cancellation);
  std::optional<OutputPart> cpu, gpu;
  for (const PlannedPart& planned : plan_.parts)
    if (planned.layer == static_cast<int>(index))
      (planned.processor == Processor::cpu ? cpu : gpu) = planned.part;
  Executor alone(processors(), Schedule(model_, index, cpu, gpu, 1), sharing_, synchronization_);
  const std::vector<int> read = lowering::tensors_read(model_.ops[index]);
  for (int image = 0; image < batch; ++image) {
    cancellation.check();
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
    alone.run(in.data(), out.data());
  }
}

std::string CoexecBackend::kernel(size_t index) const {
  return executor_ ? executor_->kernel(index) : cpu_alone_->kernel(index);
}

MemoryInfo CoexecBackend::memory() const {
  if (!executor_) return cpu_alone_->memory();
  return {executor_->activation_bytes(), executor_->activation_bytes(), executor_->scratch_bytes(),
          executor_->weight_bytes(), model_.file.size()};
}

LayerTimes CoexecBackend::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                        const std::optional<OutputPart>& gpu, int repeats) {
  std::unique_ptr<LayerMeasurement> measurement = std::move(measurement_);
  if (!measurement || !measurement->is_of(index, cpu, gpu)) {
    measurement.reset();  // before the next one takes memory
    measurement =
        std::make_unique<LayerMeasurement>(processors(), index, cpu, gpu, sharing_, synchronization_);
  }
  const LayerTimes times = measurement->measure(repeats);
  measurement_ = std::move(measurement);  // not one that failed
  return times;
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

std::unique_ptr<Backend> make_backend(const Model& model, const std::string& gpu, const std::string& isa,
                                      const Options& options) {
  std::string label;
  std::shared_ptr<opencl::Context> context = make_context(options, gpu, &label);
  return std::make_unique<CoexecBackend>(model, std::move(context), label, choose_isa(isa), options);
}

}  // namespace phonebit::coexec
