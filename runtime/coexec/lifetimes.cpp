#include "coexec/lifetimes.h"

#include <cstddef>

namespace phonebit::engine::coexec {

LifetimeOrder::LifetimeOrder(const Schedule& schedule) {
  int gpu_done = -1, cpu_done = -1;
  for (size_t i = 0; i < schedule.stages().size(); ++i) {
    const Stage& stage = schedule.stages()[i];
    if (stage.cpu_waits) gpu_done = static_cast<int>(i) - 1;
    cpu_done = std::max(cpu_done, stage.gpu_waits_for);
    gpu_done_.push_back(gpu_done);
    cpu_done_.push_back(cpu_done);
  }
}

int LifetimeOrder::stage_of_transfer(int stage) const {
  const auto found = std::lower_bound(cpu_done_.begin(), cpu_done_.end(), stage);  // never falls
  return static_cast<int>(found - cpu_done_.begin());
}

bool LifetimeOrder::is_before(const Lifetime& a, const Lifetime& b) const {
  const auto done = [](const std::vector<int>& by_stage, int stage) {
    const int last = static_cast<int>(by_stage.size()) - 1;
    return stage < 0 ? -1 : by_stage[static_cast<size_t>(std::min(stage, last))];
  };
  const int cpu_begins = b.first_cpu.stage, gpu_begins = b.first_gpu.stage;
  const bool is_before_cpu = a.last_cpu < b.first_cpu && a.last_gpu.stage <= done(gpu_done_, cpu_begins);
  const bool is_before_gpu = a.last_gpu < b.first_gpu && a.last_cpu.stage <= done(cpu_done_, gpu_begins);
  return (cpu_begins == INT_MAX || is_before_cpu) && (gpu_begins == INT_MAX || is_before_gpu);
}

}  // namespace phonebit::engine::coexec
