// The trial of a plan: whom the network is left to.
#include <algorithm>
#include <chrono>
#include <limits>
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
  tell_verdict();
  return true;
}

void CoexecBackend::start_trial() {
  if (!is_tried_) return;
  std::vector<Runner> rivals;
  for (const Runner runner : {Runner::plan, Runner::cpu, Runner::gpu})
    if (runner != runner_ && (runner != Runner::plan || uses_gpu_)) rivals.push_back(runner);
  trial_.emplace(runner_, std::move(rivals));
  make_rival();
}

void CoexecBackend::make_rival() {
  while (!trial_->is_over()) {
    try {
      return make(trial_->rival());
    } catch (const Error& error) {  // e.g. more memory than it may take
      add_warnings({format_text("%s: auto-selection goes on without one of its candidates: %s",
                                label_.c_str(), error.what())});
      trial_->forfeit();
    }
  }
  end_trial();
}

void CoexecBackend::run_tried(const std::vector<InputBuffer>& inputs,
                              const std::vector<OutputBuffer>& outputs, int batch,
                              const Cancellation& cancellation) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = std::chrono::steady_clock::now();
  run(trial_ ? trial_->next() : runner_, inputs, outputs, batch, cancellation, nullptr);
  const double ms = Milliseconds(std::chrono::steady_clock::now() - begin).count() / batch;
  if (!trial_) {
    if (watch_.has_become_slow(ms, rivals_ms())) start_trial();
    return;
  }
  const Runner rival = trial_->rival();
  trial_->record(ms);
  if (trial_->is_over()) return end_trial();
  if (trial_->rival() == rival) return;
  leave_to(trial_->champion());  // the loser's memory goes before the next rival takes its own
  make_rival();
}

double CoexecBackend::rivals_ms() const {
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kRunners; ++i)
    if (static_cast<Runner>(i) != runner_ && trial_ms_[i] > 0.0) least = std::min(least, trial_ms_[i]);
  return least;
}

void CoexecBackend::end_trial() {
  const bool is_first = std::count(trial_ms_.begin(), trial_ms_.end(), 0.0) == kRunners;
  for (size_t i = 0; i < kRunners; ++i) trial_ms_[i] = trial_->median_ms(static_cast<Runner>(i));
  const Runner winner = trial_->champion();
  const bool is_compared = std::count(trial_ms_.begin(), trial_ms_.end(), 0.0) < kRunners - 1;
  trial_.reset();
  // What a plan loses later is of that time: networks that are loaded then begin with it, and are watched.
  if (is_compared && (is_first || winner == planned_runner())) kept_verdict_->store({winner, trial_ms_});
  leave_to(winner);
  tell_verdict();
}

void CoexecBackend::tell_verdict() {
  const Runner planned = planned_runner();
  static constexpr const char* kNames[] = {"the plan", "the CPU alone", "the GPU alone"};
  verdict_warning_.clear();
  if (runner_ == planned) return;
  const auto before = static_cast<size_t>(planned), after = static_cast<size_t>(runner_);
  verdict_warning_ = format_text(
      "%s: tried here, %s takes %.3g ms, %s %.3g ms; %s does everything from now "
      "on; 'phonebit plan' makes a plan by measuring",
      label_.c_str(), kNames[before], trial_ms_[before], kNames[after], trial_ms_[after], kNames[after]);
}

void CoexecBackend::leave_to(Runner runner) {
  runner_ = runner;
  if (runner != Runner::plan) executor_.reset();
  if (runner != Runner::cpu) cpu_alone_.reset();
  if (runner != Runner::gpu) gpu_alone_.reset();
}

}  // namespace phonebit::engine::coexec
