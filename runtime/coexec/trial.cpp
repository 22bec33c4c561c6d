#include "coexec/trial.h"

#include <algorithm>

#include "host_buffers.h"

namespace phonebit::coexec {

namespace {

/// The first round does not count: memory is touched, programs are loaded, clocks rise.
constexpr int kUncounted = 1;
constexpr int kRounds = kUncounted + 7;
/// A turn lasts at least so long: of small networks several passes.
constexpr int kTurnPasses = 2;
constexpr double kTurnMs = 4.0;
/// After so many counted rounds who is hopelessly slow takes no more turns, each of which is a late result.
constexpr int kRoundsOfAll = 2;
constexpr double kHopeless = 1.5;

size_t index_of(Runner runner) { return static_cast<size_t>(runner); }

}  // namespace

Trial::Trial(const std::array<bool, kRunners>& takes_part) : is_in_(takes_part) {
  const auto first = std::find(is_in_.begin(), is_in_.end(), true);
  next_ = static_cast<Runner>(first - is_in_.begin());
}

void Trial::record(double milliseconds) {
  if (is_over_) return;
  ++passes_;
  turn_ms_ += milliseconds;
  if (passes_ < kTurnPasses || turn_ms_ < kTurnMs) return;
  if (round_ >= kUncounted) turns_ms_[index_of(next_)].push_back(milliseconds);
  end_turn();
}

void Trial::end_turn() {
  passes_ = 0;
  turn_ms_ = 0.0;
  size_t next = index_of(next_);
  do {
    next = (next + 1) % kRunners;
    if (next == 0) end_round();
  } while (!is_in_[next]);
  next_ = is_over_ ? fastest() : static_cast<Runner>(next);
}

void Trial::end_round() {
  ++round_;
  if (round_ >= kUncounted + kRoundsOfAll) drop_slow();
  is_over_ = round_ == kRounds || std::count(is_in_.begin(), is_in_.end(), true) == 1;
}

void Trial::drop_slow() {
  const auto least = [&](Runner runner) {
    const std::vector<double>& turns = turns_ms_[index_of(runner)];
    return *std::min_element(turns.begin(), turns.end());
  };
  const double best = least(fastest());
  for (size_t i = 0; i < kRunners; ++i)
    is_in_[i] = is_in_[i] && least(static_cast<Runner>(i)) <= kHopeless * best;
}

Runner Trial::fastest() const {
  const auto first = std::find(is_in_.begin(), is_in_.end(), true);
  auto best = static_cast<Runner>(first - is_in_.begin());
  for (size_t i = 0; i < kRunners; ++i) {
    const auto runner = static_cast<Runner>(i);
    if (is_in_[i] && median_ms(runner) < median_ms(best)) best = runner;
  }
  return best;
}

double Trial::median_ms(Runner runner) const {
  const std::vector<double>& turns = turns_ms_[index_of(runner)];
  return turns.empty() ? 0.0 : median(turns);
}

}  // namespace phonebit::coexec
