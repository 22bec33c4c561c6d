// Who is the fastest to run a network here: tried out in its first passes, which give results as any other.
#pragma once

#include <array>
#include <cstddef>

namespace phonebit::engine::coexec {

/// Who runs a network: both processors as the plan says, or one of them alone.
enum class Runner { plan = 0, cpu = 1, gpu = 2 };
constexpr int kRunners = 3;

/// The contestants take turns of some passes. What a turn counts is its last pass: the first one finds the
/// other contestants' weights in the caches. The fastest is who has the least median of seven rounds.
class Trial {
 public:
  explicit Trial(const std::array<bool, kRunners>& takes_part);

  /// Who is to run the next pass; at the end, the fastest.
  Runner next() const { return static_cast<Runner>(next_); }
  /// What next() took for an image.
  void record(double milliseconds);
  bool is_over() const { return is_over_; }
  /// Median milliseconds of an image so far; 0 of one without a turn that counts.
  double median_ms(Runner runner) const { return turns_[static_cast<size_t>(runner)].median_ms(); }

 private:
  static constexpr int kCounted = 7;

  /// What the turns of one contestant took.
  struct Turns {
    std::array<double, kCounted> ms{};  // ascending
    size_t count = 0;

    void add(double milliseconds);
    double least_ms() const { return ms[0]; }
    double median_ms() const { return ms[count / 2]; }
  };

  void end_turn();
  void end_round();
  void drop_slow();
  size_t fastest() const;

  std::array<bool, kRunners> is_in_;
  std::array<Turns, kRunners> turns_;
  size_t next_ = 0;
  int round_ = 0, passes_ = 0;  // passes of this turn
  double turn_ms_ = 0.0;
  bool is_over_ = false;
};

}  // namespace phonebit::engine::coexec
