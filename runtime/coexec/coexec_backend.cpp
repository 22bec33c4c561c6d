#include "coexec/coexec_backend.h"

#include <chrono>
#include <utility>

#include "coexec/plan_backend.h"
#include "cpu/cpu_backend.h"
#include "gpu/gpu_backend.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

CoexecBackend::CoexecBackend(const loader::Model& model, std::shared_ptr<gpu::Device> device,
                             std::string gpu_label, const cpu::Isa& isa,
                             std::shared_ptr<threads::ThreadPool> pool, const Options& options)
    : model_(model),
      device_(std::move(device)),
      gpu_label_(std::move(gpu_label)),
      label_(gpu_label_ + " + cpu:" + isa.name),
      isa_(isa),
      options_(options),
      pool_(std::move(pool)),
      programs_(device_, gpu::cache_directory(options.cache_directory)),
      setup_(model, device_->facts(), plan_key(), options),
      selection_(model, setup_, plan_key(), options, label_,
                 [this](Candidate candidate) { return make(candidate); }) {
  selection_.begin();
}

std::unique_ptr<Backend> CoexecBackend::make(Candidate candidate) {
  if (candidate == Candidate::plan) return std::make_unique<PlanBackend>(processors(), pool_, setup_, label_);
  if (candidate == Candidate::cpu) return std::make_unique<cpu::CpuBackend>(model_, isa_, options_, pool_);
  return std::make_unique<gpu::GpuBackend>(model_, device_, gpu_label_, pool_, options_);
}

std::string CoexecBackend::plan_key() const {
  return format_text("%s + cpu:%s x%d", device_->facts().key().c_str(), isa_.name, pool_->threads());
}

template <class Body>
void CoexecBackend::with_recovery(const Body& body) {
  // A few times at most: without another candidate, from polling to events, from the GPU to the CPU.
  for (;;) {
    try {
      return body();
    } catch (const Error& error) {
      const bool has_gpu = selection_.is_comparing() || selection_.selected() != Candidate::cpu;
      if (error.code() != ErrorCode::device || !has_gpu) throw;
      recover(error);
    }
  }
}

void CoexecBackend::recover(const Error& error) {
  const bool has_plan_failed =
      selection_.selected() == Candidate::plan && selection_.next() == Candidate::plan;
  if (selection_.is_comparing()) {
    selection_.stop(!has_plan_failed);  // another candidate that fails would fail again
    if (!has_plan_failed) return;
  }
  if (has_plan_failed && static_cast<PlanBackend&>(selection_.backend()).recover(error))
    return selection_.compare();
  setup_.warnings.push_back(
      format_text("%s: %s; the CPU does everything from now on", label_.c_str(), error.what()));
  selection_.leave_to_cpu();
}

std::vector<std::string> CoexecBackend::warnings() const {
  std::vector<std::string> result = setup_.warnings;
  if (!selection_.warning().empty()) result.push_back(selection_.warning());
  return result;
}

void CoexecBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                            int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  with_recovery([&] {
    if (layer_ms != nullptr)
      return selection_.backend().forward(inputs, outputs, batch, cancellation, layer_ms);
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const auto begin = std::chrono::steady_clock::now();
    selection_.next_backend().forward(inputs, outputs, batch, cancellation, nullptr);
    selection_.record(Milliseconds(std::chrono::steady_clock::now() - begin).count() / batch);
  });
}

void CoexecBackend::activations(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& tensors, int batch,
                                const Cancellation& cancellation) {
  with_recovery([&] { selection_.backend().activations(inputs, tensors, batch, cancellation); });
}

MemoryInfo CoexecBackend::memory() const {
  MemoryInfo sum{};
  for (const Candidate candidate : {Candidate::plan, Candidate::cpu, Candidate::gpu}) {
    const Backend* const backend = selection_.find(candidate);
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
  const auto& [plan_ms, cpu_ms, gpu_ms] = selection_.found_ms();
  return {setup_.sharing,
          setup_.synchronization,
          selection_.selected() == Candidate::cpu,
          selection_.selected() == Candidate::gpu,
          selection_.is_comparing(),
          plan_ms,
          cpu_ms,
          gpu_ms};
}

LayerTimes CoexecBackend::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                        const std::optional<OutputPart>& gpu, int repeats,
                                        const Cancellation& cancellation) {
  std::unique_ptr<LayerMeasurement> measurement = std::move(measurement_);
  if (!measurement || measurement->index() != index) {
    measurement.reset();  // before the next one takes memory
    measurement = std::make_unique<LayerMeasurement>(processors(), index, setup_);
  }
  const LayerTimes times = measurement->measure(cpu, gpu, repeats, cancellation);
  measurement_ = std::move(measurement);  // not one that failed
  return times;
}

PassTimes CoexecBackend::measure_pass(int repeats, const Cancellation& cancellation) {
  try {
    return coexec::measure_pass(model_, selection_, repeats, cancellation);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device) recover(error);
    throw;
  }
}

}  // namespace phonebit::engine::coexec
