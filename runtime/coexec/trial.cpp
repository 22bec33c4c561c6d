#include "coexec/trial.h"

namespace phonebit::engine::coexec {

namespace {

/// The first round does not count: memory is touched, programs are loaded, clocks rise.
constexpr int kUncounted = 1;
/// A turn lasts at least so long: of small networks several passes.
constexpr int kTurnPasses = 2;
constexpr double kTurnMs = 4.0;
/// After so many counted rounds who is hopelessly slow takes no more turns, each of which is a late result.
constexpr int kRoundsOfAll = 2;
constexpr double kHopeless = 1.5;

}  // namespace

Trial::Trial(const std::array<bool, kRunners>& takes_part) : is_in_(takes_part) {
  while (!is_in_[next_]) ++next_;
}

void Trial::Turns::add(double milliseconds) {
  size_t at = count++;
  for (; at > 0 && ms[at - 1] > milliseconds; --at) ms[at] = ms[at - 1];
  ms[at] = milliseconds;
}

void Trial::record(double milliseconds) {
  if (is_over_) return;
  ++passes_;
  turn_ms_ += milliseconds;
  if (passes_ < kTurnPasses || turn_ms_ < kTurnMs) return;
  if (round_ >= kUncounted) turns_[next_].add(milliseconds);
  end_turn();
}

void Trial::end_turn() {
  passes_ = 0;
  turn_ms_ = 0.0;
  do {
    next_ = (next_ + 1) % kRunners;
    if (next_ == 0) end_round();
  } while (!is_in_[next_]);
  if (is_over_) next_ = fastest();
}

void Trial::end_round() {
  ++round_;
  if (round_ == kUncounted + kRoundsOfAll) drop_slow();
  const int left = is_in_[0] + is_in_[1] + is_in_[2];
  is_over_ = round_ == kUncounted + kCounted || left == 1;
}

void Trial::drop_slow() {
  const double best = turns_[fastest()].least_ms();
  for (size_t i = 0; i < kRunners; ++i) is_in_[i] = is_in_[i] && turns_[i].least_ms() <= kHopeless * best;
}

size_t Trial::fastest() const {
  size_t best = kRunners;
  for (size_t i = 0; i < kRunners; ++i)
    if (is_in_[i] && (best == kRunners || turns_[i].median_ms() < turns_[best].median_ms())) best = i;
  return best;
}

}  // namespace phonebit::engine::coexec
