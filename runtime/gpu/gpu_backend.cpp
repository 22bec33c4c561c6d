#include "gpu/gpu_backend.h"

#include <algorithm>
#include <cctype>

#include "types/fail.h"

namespace phonebit::engine::gpu {

using loader::Model;
using loader::Op;

std::vector<std::pair<std::string, std::string>> table_choices(const DeviceFacts& device) {
  const TuningTable table = TuningTable::parse(built_in_tuning_table(), "tuning.table");
  std::vector<std::pair<std::string, std::string>> result;
  for (const TuningEntry& entry : table.entries()) {
    const auto is_known = [&](const auto& known) { return known.first == entry.op + " " + entry.shape; };
    const bool is_exact_shape = std::isdigit(static_cast<unsigned char>(entry.shape[0])) != 0;
    if (is_exact_shape || std::any_of(result.begin(), result.end(), is_known)) continue;
    const std::vector<KernelChoice> choices = table.choices({entry.op, entry.shape, ""}, device);
    if (!choices.empty()) result.emplace_back(entry.op + " " + entry.shape, choices[0].text());
  }
  return result;
}

GpuBackend::GpuBackend(const Model& model, std::shared_ptr<Device> device, std::string label,
                       std::shared_ptr<threads::ThreadPool> pool, const Options& options)
    : model_(model),
      device_(std::move(device)),
      label_(std::move(label)),
      programs_(device_, cache_directory(options.cache_directory)),
      executor_(model, device_, programs_, options),
      pool_(std::move(pool)),
      cache_directory_(options.cache_directory),
      can_replay_(options.command_buffer),
      levels_(model.inputs.size()) {
  for (size_t i = 0; i < model.ops.size(); ++i) executor_.prepare_layer(i);
  executor_.prepare(1);
}

MemoryInfo GpuBackend::memory() const {
  return {executor_.storage().arena_bytes(1), executor_.storage().lower_bound_bytes(),
          executor_.layers().scratch_bytes(), executor_.layers().weight_bytes(), model_.file.size()};
}

StartupInfo GpuBackend::startup() const {
  StartupInfo info = programs_.statistics();
  info.self_tests_run = executor_.layers().self_tests_run();
  info.uses_command_buffer = executor_.uses_command_buffer();
  return info;
}

}  // namespace phonebit::engine::gpu
