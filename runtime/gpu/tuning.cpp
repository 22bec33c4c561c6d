// Candidates for a layer and their times: what tuners are made of.
#include <cmath>
#include <cstring>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "gpu/gpu_backend.h"
#include "gpu/test_problems.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

/// Appends every combination of the kernel's tunables.
void append_combinations(const char* kernel, std::vector<KernelChoice>& choices) {
  std::vector<KernelChoice> combinations{{kernel, {}}};
  for (const Tunable& tunable : tunables(kernel)) {
    std::vector<KernelChoice> longer;
    for (const KernelChoice& shorter : combinations) {
      for (const int value : tunable.values) {
        longer.push_back(shorter);
        longer.back().parameters.emplace_back(tunable.name, value);
      }
    }
    combinations = std::move(longer);
  }
  choices.insert(choices.end(), combinations.begin(), combinations.end());
}

bool are_close(const loader::Tensor& tensor, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
               bool is_exact) {
  if (is_exact || tensor.dtype != format::DataType::kF32) return a == b;
  for (size_t at = 0; at < a.size(); at += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    // Half has 11 significant bits; sums of dyadic numbers lose a few of them at most.
    if (!(std::fabs(x - y) <= 1e-2f * std::fmax(1.0f, std::fabs(x)))) return false;
  }
  return true;
}

/// All choices of kernels and parameters for an op.
std::vector<KernelChoice> all_choices(const loader::Model& model, const loader::Op& op,
                                      const Target& target) {
  std::vector<KernelChoice> all, result;
  for (const char* kernel : op_kernels(model, op).family->kernels) append_combinations(kernel, all);
  for (KernelChoice& choice : all) {
    if (can_run(model, op, target, choice)) result.push_back(std::move(choice));
  }
  return result;
}

}  // namespace

std::vector<std::string> GpuBackend::candidates(size_t index) const {
  const loader::Op& op = model_.ops[index];
  if (executor_.layers().layer(index).launches.empty()) return {};
  const std::string present = executor_.layers().choice(index).full_text();
  std::vector<std::string> result{present};
  for (const KernelChoice& choice : all_choices(model_, op, executor_.layers().target())) {
    std::string text = choice.full_text();
    if (text != present) result.push_back(std::move(text));
  }
  return result;
}

std::vector<KernelProgram> GpuBackend::programs(size_t index) const {
  std::vector<KernelProgram> result;
  for (const Launch& launch : executor_.layers().layer(index).launches)
    result.push_back({launch.name, std::string(launch.text)});
  return result;
}

double GpuBackend::measure_choice(size_t index, const std::string& choice_text, int batch, int repeats,
                                  bool* is_equal, const Cancellation& cancellation) {
  const loader::Op& op = model_.ops[index];
  const KernelChoice choice = KernelChoice::parse(choice_text);
  if (!can_run(model_, op, executor_.layers().target(), choice))
    fail(ErrorCode::input, "layer '%s': kernel %s cannot serve it on %s", op.name.c_str(),
         choice_text.c_str(), label_.c_str());
  if (batch > executor_.largest_batch())
    fail(ErrorCode::input, "batch: got %d, expected at most %d", batch, executor_.largest_batch());
  const std::vector<int> read = analysis::tensors_read(op), written = analysis::tensors_written(op);
  std::mt19937 random(7);
  std::vector<std::vector<std::byte>> operands;
  for (const int tensor : read) operands.push_back(random_content(model_.tensor(tensor), batch, random));
  const auto results = [&] {
    std::vector<std::vector<std::byte>> all;
    for (size_t i = 0; i < read.size(); ++i) executor_.write(read[i], operands[i].data(), batch, true);
    executor_.run_layer(index, cancellation);
    for (const int tensor : written) {
      all.emplace_back(model_.tensor(tensor).bytes() * static_cast<size_t>(batch));
      executor_.read(tensor, all.back().data(), batch, true);
    }
    return all;
  };
  const KernelChoice present = executor_.layers().choice(index);
  const auto restore = [&] {
    executor_.set_layer(index, present);
    executor_.prepare(batch);
  };

  executor_.prepare(batch);
  const auto expected = results();
  cancellation.check();
  executor_.set_layer(index, choice);
  try {
    cancellation.check();
    executor_.prepare(batch);
    const auto got = results();
    *is_equal = true;
    for (size_t i = 0; i < written.size(); ++i) {
      if (!are_close(model_.tensor(written[i]), expected[i], got[i], executor_.layers().target().is_exact))
        *is_equal = false;
    }
    std::vector<double> times;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      Events events;
      executor_.enqueue_layer(index, device_->profiling_queue(), &events);
      device_->profiling_queue().finish();
      times.push_back(event_milliseconds(events));
      cancellation.check();
    }
    restore();
    return median(std::move(times));
  } catch (...) {
    restore();
    throw;
  }
}

std::string GpuBackend::tuning_line(size_t index, const std::string& choice) const {
  const DeviceFacts& device = device_->facts();
  const loader::Op& op = model_.ops[index];
  const TuningQuery query = tuning_query(*op_kernels(model_, op).family, layer_facts(model_, op));
  return query.op + " " + query.signature + " " + device.vendor + " " + device.family + " " +
         table_name(device.name) + " " + KernelChoice::parse(choice).text();
}

}  // namespace phonebit::engine::gpu
