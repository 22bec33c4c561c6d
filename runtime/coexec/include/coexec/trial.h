// Who is the fastest to run a network here: tried out in its first passes, which give results as any other.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace phonebit::engine::coexec {

/// Who runs a network: both processors as the plan says, or one of them alone.
enum class Runner { plan = 0, cpu = 1, gpu = 2 };
constexpr int kRunners = 3;

/// The champion meets its rivals one after the other; who wins a duel is the champion of the next, and the
/// loser is not needed again. In a duel both take turns of some passes. What a turn counts is its last pass:
/// the first one finds the other's weights in the caches. Who has been faster in three rounds more than the
/// other has won. If nobody has after nine rounds, they differ by less than the noise, and the champion stays.
class Trial {
 public:
  /// `rivals` in the order of their duels; none: it is over at once.
  Trial(Runner champion, std::vector<Runner> rivals);

  /// Who is to run the next pass; at the end, the champion.
  Runner next() const { return is_over() || !is_rivals_turn_ ? champion_ : rivals_.front(); }
  Runner champion() const { return champion_; }
  /// Who must be ready now, beside the champion; only while the trial lasts.
  Runner rival() const { return rivals_.front(); }
  /// What next() took for an image.
  void record(double milliseconds);
  /// The rival cannot run: it loses.
  void forfeit();
  bool is_over() const { return rivals_.empty(); }
  /// Median milliseconds of an image so far; 0 of one without a turn that counts.
  double median_ms(Runner runner) const;

 private:
  /// So many rounds of a duel count at most; a champion has two.
  static constexpr int kMostRounds = 9;
  /// What the turns of a contestant that count took.
  struct Turns {
    std::array<double, 2 * kMostRounds> ms{};  // ascending
    size_t count = 0;

    void add(double milliseconds);
  };

  Turns& turns(Runner runner) { return turns_[static_cast<size_t>(runner)]; }
  void end_round();
  void end_duel(bool has_rival_won);

  Runner champion_;
  std::vector<Runner> rivals_;
  std::array<Turns, kRunners> turns_;
  bool is_rivals_turn_ = false;
  int round_ = 0, lead_ = 0;  // of this duel: rounds that the champion has won more than the rival
  int passes_ = 0;            // of this turn
  double turn_ms_ = 0.0;
  double champions_ms_ = 0.0, last_ms_ = 0.0;  // what the turns of this round count
};

/// Whether who won has become slow since, e.g. because other work takes cores that it waits for: then another
/// trial tells who is the fastest now.
class SlownessWatch {
 public:
  /// What a pass took, and what the fastest rival took when it was tried; milliseconds of an image. True once
  /// so many passes in a row were slow; after each time, twice as many.
  bool has_become_slow(double milliseconds, double rivals_ms);

 private:
  int slow_passes_ = 0, patience_ = 8;
};

}  // namespace phonebit::engine::coexec
