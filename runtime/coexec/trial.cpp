#include "coexec/trial.h"

#include <algorithm>
#include <utility>

namespace phonebit::engine::coexec {

namespace {

/// The first round does not count: memory is touched, programs are loaded, clocks rise.
constexpr int kUncounted = 1;
/// A turn lasts at least so long: of small networks several passes.
constexpr int kTurnPasses = 2;
constexpr double kTurnMs = 4.0;
/// So many rounds more than the other decide.
constexpr int kLead = 3;
/// After so many counted rounds who is hopelessly slow takes no more turns, each of which is a late result.
constexpr int kRoundsOfAll = 2;
constexpr double kHopeless = 1.5;
/// Slower than its rival by so much, a winner is no longer what the trial has found.
constexpr double kSlow = 1.25;
constexpr int kMostPatience = 1 << 20;

}  // namespace

Trial::Trial(Runner champion, std::vector<Runner> rivals) : champion_(champion), rivals_(std::move(rivals)) {}

void Trial::Turns::add(double milliseconds) {
  size_t at = count++;
  for (; at > 0 && ms[at - 1] > milliseconds; --at) ms[at] = ms[at - 1];
  ms[at] = milliseconds;
}

void Trial::record(double milliseconds) {
  if (is_over()) return;
  ++passes_;
  turn_ms_ += milliseconds;
  if (passes_ < kTurnPasses || turn_ms_ < kTurnMs) return;
  if (round_ >= kUncounted) turns(next()).add(milliseconds);
  passes_ = 0;
  turn_ms_ = 0.0;
  champions_ms_ = std::exchange(last_ms_, milliseconds);  // of the rival's turn: the one before it
  is_rivals_turn_ = !is_rivals_turn_;
  if (!is_rivals_turn_) end_round();
}

void Trial::end_round() {
  if (++round_ <= kUncounted) return;
  lead_ += (champions_ms_ < last_ms_) - (last_ms_ < champions_ms_);
  const int counted = round_ - kUncounted;
  // Of a champion that won a duel before this one, the least of all its turns counts.
  const double ratio = turns(champion_).ms[0] / turns(rival()).ms[0];
  if (lead_ <= -kLead || (counted >= kRoundsOfAll && ratio > kHopeless)) return end_duel(true);
  if (lead_ >= kLead || (counted >= kRoundsOfAll && ratio * kHopeless < 1.0) || counted == kMostRounds)
    end_duel(false);
}

void Trial::forfeit() { end_duel(false); }

void Trial::end_duel(bool has_rival_won) {
  if (has_rival_won) champion_ = rival();
  rivals_.erase(rivals_.begin());
  is_rivals_turn_ = false;
  round_ = lead_ = passes_ = 0;
  turn_ms_ = 0.0;
}

double Trial::median_ms(Runner runner) const {
  const Turns& of_runner = turns_[static_cast<size_t>(runner)];
  return of_runner.ms[of_runner.count / 2];  // zeros before
}

bool SlownessWatch::has_become_slow(double milliseconds, double rivals_ms) {
  slow_passes_ = milliseconds > kSlow * rivals_ms ? slow_passes_ + 1 : 0;
  if (slow_passes_ < patience_) return false;
  slow_passes_ = 0;
  patience_ = std::min(2 * patience_, kMostPatience);
  return true;
}

}  // namespace phonebit::engine::coexec
