#include "coexec/measurement.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <random>
#include <utility>

#include "coexec/plan_backend.h"
#include "gpu/test_problems.h"

namespace phonebit::engine::coexec {
namespace {

using Clock = std::chrono::steady_clock;

/// Stages of a measured layer: as many as make one wait at the end small in comparison.
constexpr int kMeasuredStages = 8;
/// No run begins later than so long after the first: slow layers need fewer.
constexpr double kMeasuringUs = 25e3;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <class Byte>
std::vector<Byte*> pointers(std::vector<std::vector<std::byte>>& buffers) {
  std::vector<Byte*> result;
  for (auto& buffer : buffers) result.push_back(buffer.data());
  return result;
}

LayerTimes minimum_of(const LayerTimes& a, const LayerTimes& b) {
  return {std::min(a.total, b.total), std::min(a.cpu, b.cpu), std::min(a.gpu, b.gpu)};
}

}  // namespace

LayerMeasurement::LayerMeasurement(const Processors& processors, size_t index, const Setup& setup)
    : options_(processors.options),
      processors_{processors.model,  processors.isa,      processors.pool,
                  processors.device, processors.programs, options_},
      index_(index),
      sharing_(setup.sharing),
      synchronization_(setup.synchronization) {
  // The GPU may be late by all stages at the end, where an inference would have waited at each.
  options_.sync_limit_ms = std::min(options_.sync_limit_ms, INT_MAX / kMeasuredStages) * kMeasuredStages;
}

LayerTimes LayerMeasurement::measure(const std::optional<OutputPart>& cpu,
                                     const std::optional<OutputPart>& gpu, int repeats,
                                     const Cancellation& cancellation) {
  prepare(cpu, gpu);
  const std::vector<const std::byte*> in = pointers<const std::byte>(inputs_);
  const std::vector<std::byte*> out = pointers<std::byte>(outputs_);
  LayerTimes minimum{};
  const Clock::time_point first = Clock::now();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    if (repeat > 0 && microseconds_since(first) > kMeasuringUs) break;
    // The stages of the first run warm up: of them, too, only the minimum counts.
    std::vector<double> cpu_us(index_ + 1, 0.0), gpu_us(index_ + 1, 0.0);
    executor_->run_timed(in.data(), out.data(), cancellation, cpu_us, gpu_us);
    const Clock::time_point begin = Clock::now();
    executor_->run(in.data(), out.data(), cancellation);
    const LayerTimes times{microseconds_since(begin) / kMeasuredStages, cpu_us[index_], gpu_us[index_]};
    cancellation.check();
    minimum = repeat == 0 ? times : minimum_of(minimum, times);
  }
  return minimum;
}

void LayerMeasurement::prepare(const std::optional<OutputPart>& cpu, const std::optional<OutputPart>& gpu) {
  if (executor_ && cpu == cpu_ && gpu == gpu_) return;
  executor_.reset();  // before the next one takes memory
  executor_.emplace(processors_, Schedule(processors_.model, index_, cpu, gpu, kMeasuredStages), sharing_,
                    synchronization_);
  cpu_ = cpu;
  gpu_ = gpu;
  if (outputs_.empty()) make_content();
}

void LayerMeasurement::make_content() {
  const loader::Model& model = processors_.model;
  std::mt19937 random(1);
  for (const int tensor : executor_->schedule().inputs())
    inputs_.push_back(gpu::random_content(model.tensor(tensor), 1, random));
  for (const int tensor : executor_->schedule().outputs())
    outputs_.emplace_back(model.tensor(tensor).bytes());
}

PassTimes measure_pass(const loader::Model& model, const AutoSelection& selection, int repeats,
                       const Cancellation& cancellation) {
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> content;
  std::vector<InputBuffer> inputs;
  std::vector<OutputBuffer> outputs;
  for (const int tensor : model.inputs) {
    content.push_back(gpu::random_content(model.tensor(tensor), 1, random));
    inputs.push_back({content.back().data(), content.back().size()});
  }
  for (const int tensor : model.outputs) {
    content.emplace_back(model.tensor(tensor).bytes());
    outputs.push_back({content.back().data(), content.back().size()});
  }
  const auto run_timed = [&](PassTimes& parts) {
    if (selection.selected() == Candidate::plan)
      return static_cast<PlanBackend&>(selection.backend())
          .run_timed(inputs, outputs, 0, cancellation, parts.cpu, parts.gpu);
    std::vector<double>& alone = selection.selected() == Candidate::cpu ? parts.cpu : parts.gpu;
    selection.backend().forward(inputs, outputs, 1, cancellation, &alone);
    for (double& us : alone) us *= 1e3;  // of milliseconds
  };
  PassTimes quickest{};
  double total = 0.0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    cancellation.check();
    const std::vector<double> zeros(model.ops.size(), 0.0);
    PassTimes parts{0.0, zeros, zeros};
    Clock::time_point begin = Clock::now();
    run_timed(parts);
    parts.total = microseconds_since(begin);
    cancellation.check();
    begin = Clock::now();
    selection.backend().forward(inputs, outputs, 1, cancellation, nullptr);
    const double us = microseconds_since(begin);
    total = repeat == 0 ? us : std::min(total, us);
    if (repeat == 0 || parts.total < quickest.total) quickest = std::move(parts);
  }
  // Clocks cost time: without them all parts take as much less as the inference does.
  const double scale = total / quickest.total;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    quickest.cpu[i] *= scale;
    quickest.gpu[i] *= scale;
  }
  quickest.total = total;
  return quickest;
}

std::vector<DispatchInfo> dispatch(const Processors& processors, const Setup& setup, size_t index,
                                   const OutputPart& gpu) {
  Executor layer(processors, Schedule(processors.model, index, std::nullopt, gpu, 1), setup.sharing,
                 setup.synchronization);
  return layer.gpu_layers().dispatch(index);
}

}  // namespace phonebit::engine::coexec
