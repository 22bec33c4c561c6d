// The trial of a plan: whom the network is left to.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "coexec/coexec_backend.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

bool CoexecBackend::take_kept_verdict() {
  const std::optional<Verdict> kept = kept_verdict_ ? kept_verdict_->load() : std::nullopt;
  if (!kept || (!uses_gpu_ && kept->winner == Runner::plan)) return false;
  try {
    make(kept->winner);
  } catch (const Error&) {  // another trial will tell
    return false;
  }
  trial_ms_ = kept->ms;
  runner_ = kept->winner;
  warn_of_verdict();
  return true;
}

void CoexecBackend::start_trial() {
  if (!is_tried_) return;
  std::vector<Runner> rivals;
  for (const Runner runner : {Runner::cpu, Runner::gpu})
    if (runner != runner_) rivals.push_back(runner);
  trial_.emplace(runner_, std::move(rivals));
  make_rival();
}

void CoexecBackend::make_rival() {
  while (!trial_->is_over()) {
    try {
      return make_alone(trial_->rival());
    } catch (const Error& error) {  // e.g. more memory than it may take
      warnings_.push_back(
          format_text("%s: cannot be compared with the plan: %s", label_.c_str(), error.what()));
      trial_->forfeit();
    }
  }
  end_trial();
}

void CoexecBackend::run_on_trial(const std::vector<InputBuffer>& inputs,
                                 const std::vector<OutputBuffer>& outputs, int batch,
                                 const Cancellation& cancellation) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = std::chrono::steady_clock::now();
  run(trial_->next(), inputs, outputs, batch, cancellation, nullptr);
  const Runner rival = trial_->rival();
  trial_->record(Milliseconds(std::chrono::steady_clock::now() - begin).count() / batch);
  if (trial_->is_over()) return end_trial();
  if (trial_->rival() == rival) return;
  leave_to(trial_->champion());  // the loser's memory goes before the next rival takes its own
  make_rival();
}

void CoexecBackend::end_trial() {
  for (size_t i = 0; i < kRunners; ++i) trial_ms_[i] = trial_->median_ms(static_cast<Runner>(i));
  const Runner winner = trial_->champion();
  const bool is_compared = std::count(trial_ms_.begin(), trial_ms_.end(), 0.0) < kRunners - 1;
  trial_.reset();
  if (is_compared) kept_verdict_->store({winner, trial_ms_});
  leave_to(winner);
  warn_of_verdict();
}

void CoexecBackend::warn_of_verdict() {
  const Runner planned = planned_runner();
  static constexpr const char* kNames[] = {"the plan", "the CPU alone", "the GPU alone"};
  if (runner_ == planned) return;
  const auto before = static_cast<size_t>(planned), after = static_cast<size_t>(runner_);
  warnings_.push_back(format_text(
      "%s: tried here, %s takes %.3g ms, %s %.3g ms; %s does everything from now "
      "on; 'phonebit plan' makes a plan by measuring",
      label_.c_str(), kNames[before], trial_ms_[before], kNames[after], trial_ms_[after], kNames[after]));
}

void CoexecBackend::leave_to(Runner runner) {
  runner_ = runner;
  if (runner != Runner::plan) executor_.reset();
  if (runner != Runner::cpu) cpu_alone_.reset();
  if (runner != Runner::gpu) gpu_alone_.reset();
}

}  // namespace phonebit::engine::coexec
