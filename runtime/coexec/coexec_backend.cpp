#include "coexec/coexec_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "fail.h"
#include "host_buffers.h"
#include "lowering/op_part.h"
#include "lowering/op_tensors.h"
#include "lowering/plan_check.h"
#include "network_setup.h"
#include "opencl/random_content.h"

namespace phonebit::coexec {

using loader::Model;

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

/// Stages of a measured layer: as many as make one wait at the end small beside them.
constexpr int kMeasuredStages = 8;
/// Measuring ends when it has taken so long, if there are three runs: slow layers need no more.
constexpr double kMeasuringUs = 200e3;

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

/// Random content for what a measured layer reads.
std::vector<std::vector<std::byte>> random_inputs(const Model& model, const std::vector<int>& tensors) {
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> result;
  for (const int tensor : tensors) result.push_back(opencl::random_content(model.tensor(tensor), 1, random));
  return result;
}

template <class Byte>
std::vector<Byte*> pointers(std::vector<std::vector<std::byte>>& buffers) {
  std::vector<Byte*> result;
  for (auto& buffer : buffers) result.push_back(buffer.data());
  return result;
}

}  // namespace

CoexecBackend::CoexecBackend(const Model& model, std::shared_ptr<opencl::Context> context,
                             std::string gpu_label, const cpu::Isa& isa, const Options& options)
    : model_(model),
      context_(std::move(context)),
      label_(std::move(gpu_label) + " + cpu:" + isa.name),
      isa_(isa),
      options_(options),
      pool_(choose_threads(options.threads)),
      programs_(context_, opencl::cache_directory(options.cache_directory)),
      sharing_(choose_sharing(context_->device(), options.sharing)),
      synchronization_(choose_synchronization(context_->device(), options.synchronization)) {
  const std::string key = plan_key();
  const auto own = std::find_if(model.plans.begin(), model.plans.end(),
                                [&](const ExecutionPlan& plan) { return plan.device == key; });
  if (options.plan) {
    plan_ = *options.plan;
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
  fallback_ = std::make_unique<cpu::CpuBackend>(model_, isa_, pool_.threads(), options_.max_memory_bytes,
                                                options_.precision);
}

void CoexecBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                            int batch) {
  std::vector<const std::byte*> in(inputs.size());
  std::vector<std::byte*> out(outputs.size());
  for (int image = 0; image < batch && !is_on_cpu_alone(); ++image) {
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = image_of(inputs[i], model_.tensor(model_.inputs[i]).bytes(), image);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = image_of(outputs[i], model_.tensor(model_.outputs[i]).bytes(), image);
    with_recovery([&] { executor_->run(in.data(), out.data()); });
  }
  // All of the batch again: images before the failure keep their results, which are the same bits.
  if (is_on_cpu_alone()) fallback_->forward(inputs, outputs, batch);
}

std::vector<double> CoexecBackend::profile(const std::vector<InputBuffer>& inputs, int batch, int repeats) {
  if (is_on_cpu_alone()) return fallback_->profile(inputs, batch, repeats);
  std::vector<double> result(model_.ops.size(), 0.0);
  for (int image = 0; image < batch; ++image) {
    std::vector<const std::byte*> in(inputs.size());
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = image_of(inputs[i], model_.tensor(model_.inputs[i]).bytes(), image);
    std::vector<std::vector<double>> times(model_.ops.size());
    for (int repeat = -1; repeat < repeats; ++repeat) {  // -1: the warm-up
      std::vector<double> cpu(model_.ops.size(), 0.0), gpu(model_.ops.size(), 0.0);
      executor_->profile(in.data(), cpu, gpu);
      for (size_t i = 0; repeat >= 0 && i < times.size(); ++i) times[i].push_back(std::max(cpu[i], gpu[i]));
    }
    for (size_t i = 0; i < times.size(); ++i) result[i] += 1e-3 * median(std::move(times[i]));
  }
  return result;
}

void CoexecBackend::activations(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& tensors, int batch) {
  const auto of_image = [&](size_t tensor, int image) {
    return image_of(tensors[tensor], model_.tensors[tensor].bytes(), image);
  };
  for (int image = 0; image < batch && !is_on_cpu_alone(); ++image) {
    std::vector<const std::byte*> in(inputs.size());
    std::vector<std::byte*> out;
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = image_of(inputs[i], model_.tensor(model_.inputs[i]).bytes(), image);
    for (const int tensor : model_.outputs) out.push_back(of_image(static_cast<size_t>(tensor), image));
    with_recovery([&] {
      executor_->run(in.data(), out.data());
      for (size_t i = 0; i < tensors.size(); ++i) executor_->read(static_cast<int>(i), of_image(i, image));
    });
  }
  if (is_on_cpu_alone()) fallback_->activations(inputs, tensors, batch);
}

void CoexecBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                           const std::vector<OutputBuffer>& results, int batch) {
  if (is_on_cpu_alone()) return fallback_->run_op(index, operands, results, batch);
  std::optional<OutputPart> cpu, gpu;
  for (const PlannedPart& planned : plan_.parts)
    if (planned.layer == static_cast<int>(index))
      (planned.processor == Processor::cpu ? cpu : gpu) = planned.part;
  Executor alone(processors(), Schedule(model_, index, cpu, gpu, 1), sharing_, synchronization_);
  const std::vector<int> read = lowering::tensors_read(model_.ops[index]);
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
    alone.run(in.data(), out.data());
  }
}

MemoryInfo CoexecBackend::memory() const {
  return {executor_->activation_bytes(), executor_->activation_bytes(), executor_->scratch_bytes(),
          executor_->weight_bytes(), model_.file.size()};
}

LayerTimes CoexecBackend::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                        const std::optional<OutputPart>& gpu, int repeats) {
  Executor layer(processors(), Schedule(model_, index, cpu, gpu, kMeasuredStages), sharing_,
                 synchronization_);
  std::vector<std::vector<std::byte>> inputs = random_inputs(model_, layer.schedule().inputs()), outputs;
  for (const int tensor : layer.schedule().outputs()) outputs.emplace_back(model_.tensor(tensor).bytes());
  const std::vector<const std::byte*> in = pointers<const std::byte>(inputs);
  const std::vector<std::byte*> out = pointers<std::byte>(outputs);
  std::vector<double> total, of_cpu, of_gpu;
  const auto first = std::chrono::steady_clock::now();
  for (int repeat = -1; repeat < repeats; ++repeat) {  // -1: the warm-up
    const auto begin = std::chrono::steady_clock::now();
    if (total.size() >= 3 && Microseconds(begin - first).count() > kMeasuringUs) break;
    layer.run(in.data(), out.data());
    const double us = Microseconds(std::chrono::steady_clock::now() - begin).count();
    std::vector<double> cpu_us(model_.ops.size(), 0.0), gpu_us(model_.ops.size(), 0.0);
    layer.profile(in.data(), cpu_us, gpu_us);
    if (repeat < 0) continue;
    total.push_back(us / kMeasuredStages);
    of_cpu.push_back(cpu_us[index]);
    of_gpu.push_back(gpu_us[index]);
  }
  return {median(std::move(total)), median(std::move(of_cpu)), median(std::move(of_gpu))};
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

}  // namespace phonebit::coexec
