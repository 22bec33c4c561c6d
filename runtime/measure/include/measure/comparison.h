// Which of some candidates is the fastest, on a machine that other work disturbs: they take turns.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace phonebit::engine::measure {

/// Candidates are numbers below kMaxCandidates, compared pairwise; the faster one stays. Both take turns of some
/// runs, of which the last one counts: the first one finds the other's data in the caches. Who was faster in
/// three rounds more than the other stays. After nine rounds without such a lead they differ by less than the
/// noise, and the one that was there first stays.
class Comparison {
 public:
  static constexpr size_t kMaxCandidates = 3;

  /// `others` in the order in which they are compared; none: it is over at once.
  Comparison(size_t first, std::vector<size_t> others) : fastest_(first), others_(std::move(others)) {}

  /// Who is to run next; at the end, the fastest.
  size_t next() const { return is_over() || !is_others_turn_ ? fastest_ : other(); }
  /// Of those compared so far.
  size_t fastest() const { return fastest_; }
  /// Who takes turns with the fastest one; only before the end.
  size_t other() const { return others_.front(); }
  /// What a run of next() took.
  void record(double milliseconds);
  /// other() cannot run.
  void drop_other() { end_pair(false); }
  bool is_over() const { return others_.empty(); }
  /// Median milliseconds of a run so far; 0 of a candidate without a turn that counts.
  double median_ms(size_t candidate) const;

 private:
  /// So many rounds of a pair count at most; one candidate may be in two pairs.
  static constexpr int kMaxRounds = 9;

  /// What the turns of a candidate that count took.
  struct Turns {
    std::array<double, 2 * kMaxRounds> ms{};  // ascending
    size_t count = 0;
  };

  void end_round();
  void end_pair(bool is_other_faster);

  size_t fastest_;
  std::vector<size_t> others_;
  std::array<Turns, kMaxCandidates> turns_;
  bool is_others_turn_ = false;
  int round_ = 0, lead_ = 0;  // of this pair: rounds that fastest_ has won more than the other
  int runs_ = 0;              // of this turn
  double turn_ms_ = 0.0;
  double fastest_ms_ = 0.0, last_ms_ = 0.0;  // what the turns of this round count
};

/// Whether the fastest has become slow since, e.g. because other work takes cores that it waits for: then
/// another comparison finds who is the fastest now.
class SlownessWatch {
 public:
  /// What a run took, and what the fastest of the others took when it was compared. True after eight slow
  /// runs in a row; after each time, twice as many are needed.
  bool has_become_slow(double milliseconds, double others_ms);

 private:
  int slow_runs_ = 0, limit_ = 8;
};

}  // namespace phonebit::engine::measure
