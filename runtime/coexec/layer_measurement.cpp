#include "coexec/layer_measurement.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <random>
#include <utility>

#include "gpu/random_content.h"

namespace phonebit::engine::coexec {
namespace {

using Clock = std::chrono::steady_clock;

/// Stages of a measured layer: as many as make one wait at the end small beside them.
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

bool is_same(const std::optional<OutputPart>& a, const std::optional<OutputPart>& b) {
  if (!a || !b) return !a && !b;
  return a->row_begin == b->row_begin && a->row_end == b->row_end && a->channel_begin == b->channel_begin &&
         a->channel_end == b->channel_end;
}

LayerTimes least_of(const LayerTimes& a, const LayerTimes& b) {
  return {std::min(a.total, b.total), std::min(a.cpu, b.cpu), std::min(a.gpu, b.gpu)};
}

}  // namespace

LayerMeasurement::LayerMeasurement(const Processors& processors, size_t index, Sharing sharing,
                                   Synchronization synchronization)
    : options_(processors.options),
      processors_{processors.model,   processors.isa,      processors.pool,
                  processors.context, processors.programs, options_},
      index_(index),
      sharing_(sharing),
      synchronization_(synchronization) {
  // The GPU may be late by all stages at the end, where a pass would have waited at each.
  options_.sync_limit_ms = std::min(options_.sync_limit_ms, INT_MAX / kMeasuredStages) * kMeasuredStages;
}

LayerTimes LayerMeasurement::measure(const std::optional<OutputPart>& cpu,
                                     const std::optional<OutputPart>& gpu, int repeats,
                                     const Cancellation& cancellation) {
  prepare(cpu, gpu);
  const std::vector<const std::byte*> in = pointers<const std::byte>(inputs_);
  const std::vector<std::byte*> out = pointers<std::byte>(outputs_);
  LayerTimes least{};
  const Clock::time_point first = Clock::now();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    if (repeat > 0 && microseconds_since(first) > kMeasuringUs) break;
    // The stages of the first run warm up: of them, too, only the least counts.
    std::vector<double> cpu_us(index_ + 1, 0.0), gpu_us(index_ + 1, 0.0);
    executor_->run_timed(in.data(), out.data(), cancellation, cpu_us, gpu_us);
    const Clock::time_point begin = Clock::now();
    executor_->run(in.data(), out.data(), cancellation);
    const LayerTimes times{microseconds_since(begin) / kMeasuredStages, cpu_us[index_], gpu_us[index_]};
    cancellation.check();
    least = repeat == 0 ? times : least_of(least, times);
  }
  return least;
}

void LayerMeasurement::prepare(const std::optional<OutputPart>& cpu, const std::optional<OutputPart>& gpu) {
  if (executor_ && is_same(cpu, cpu_) && is_same(gpu, gpu_)) return;
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

}  // namespace phonebit::engine::coexec
