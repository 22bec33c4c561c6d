#include "measure/comparison.h"

#include <algorithm>
#include <utility>

namespace phonebit::engine::measure {

namespace {

/// The first round does not count: memory is touched, programs are loaded, clocks rise.
constexpr int kWarmUpRounds = 1;
/// A turn lasts at least so long: of small networks several runs.
constexpr int kTurnRuns = 2;
constexpr double kTurnMs = 4.0;
/// So many rounds more than the other decide.
constexpr int kLead = 3;
/// After so many counted rounds who is this many times slower takes no more turns, each of which is a late result.
constexpr int kMinRounds = 2;
constexpr double kHopeless = 1.5;
/// So many times slower than the others were, the fastest is not what the comparison found.
constexpr double kSlow = 1.25;
constexpr int kMaxSlowRuns = 1 << 20;

}  // namespace

void Comparison::record(double milliseconds) {
  if (is_over()) return;
  ++runs_;
  turn_ms_ += milliseconds;
  if (runs_ < kTurnRuns || turn_ms_ < kTurnMs) return;
  if (round_ >= kWarmUpRounds) {
    Turns& turns = turns_[next()];
    size_t at = turns.count++;
    for (; at > 0 && turns.ms[at - 1] > milliseconds; --at) turns.ms[at] = turns.ms[at - 1];
    turns.ms[at] = milliseconds;
  }
  runs_ = 0;
  turn_ms_ = 0.0;
  fastest_ms_ = std::exchange(last_ms_, milliseconds);  // of the other's turn: the one before it
  is_others_turn_ = !is_others_turn_;
  if (!is_others_turn_) end_round();
}

void Comparison::end_round() {
  if (++round_ <= kWarmUpRounds) return;
  lead_ += (fastest_ms_ < last_ms_) - (last_ms_ < fastest_ms_);
  const int counted = round_ - kWarmUpRounds;
  // The minimum of all turns, those of a pair before this one included.
  const double ratio = turns_[fastest_].ms[0] / turns_[other()].ms[0];
  if (lead_ <= -kLead || (counted >= kMinRounds && ratio > kHopeless)) return end_pair(true);
  if (lead_ >= kLead || (counted >= kMinRounds && ratio * kHopeless < 1.0) || counted == kMaxRounds)
    end_pair(false);
}

void Comparison::end_pair(bool is_other_faster) {
  if (is_other_faster) fastest_ = other();
  others_.erase(others_.begin());
  is_others_turn_ = false;
  round_ = lead_ = runs_ = 0;
  turn_ms_ = 0.0;
}

double Comparison::median_ms(size_t candidate) const {
  const Turns& turns = turns_[candidate];
  return turns.ms[turns.count / 2];  // zeros before
}

bool SlownessWatch::has_become_slow(double milliseconds, double others_ms) {
  slow_runs_ = milliseconds > kSlow * others_ms ? slow_runs_ + 1 : 0;
  if (slow_runs_ < limit_) return false;
  slow_runs_ = 0;
  limit_ = std::min(2 * limit_, kMaxSlowRuns);
  return true;
}

}  // namespace phonebit::engine::measure
