// Comparisons of candidates: who is the fastest, who drops out, and what does not decide.
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "doctest_strings.h"
#include "measure/comparison.h"

namespace {

using phonebit::engine::measure::Comparison;
using phonebit::engine::measure::SlownessWatch;

constexpr size_t kPlan = 0, kCpu = 1, kGpu = 2, kCount = 3;

struct Outcome {
  size_t fastest;
  std::array<int, kCount> runs;
  std::array<double, kCount> median_ms;
};

/// Milliseconds of a run: of whom, and how many runs there were before, in all and of this turn.
using Times = std::function<double(size_t candidate, int run, int of_turn)>;

const std::vector<size_t> kBoth{kCpu, kGpu};

Outcome compare(size_t first, const std::vector<size_t>& others, const Times& times) {
  Comparison comparison(first, others);
  Outcome outcome{};
  size_t last = comparison.next();
  for (int run = 0, of_turn = 0; !comparison.is_over() && run < 10000; ++run, ++of_turn) {
    const size_t candidate = comparison.next();
    CHECK((candidate == comparison.fastest() || candidate == comparison.other()));
    if (candidate != last) of_turn = 0;
    last = candidate;
    ++outcome.runs[candidate];
    comparison.record(times(candidate, run, of_turn));
  }
  CHECK(comparison.is_over());
  outcome.fastest = comparison.next();
  CHECK(outcome.fastest == comparison.fastest());
  comparison.record(1e-3);
  CHECK(comparison.next() == outcome.fastest);  // what comes after the end decides nothing
  for (size_t i = 0; i < kCount; ++i) outcome.median_ms[i] = comparison.median_ms(i);
  return outcome;
}

Outcome compare_all(const Times& times) { return compare(kPlan, kBoth, times); }

Times constant(double plan, double cpu, double gpu) {
  return [=](size_t candidate, int, int) { return std::array{plan, cpu, gpu}[candidate]; };
}

TEST_CASE("the fastest wins") {
  CHECK(compare_all(constant(10, 11, 12)).fastest == kPlan);
  CHECK(compare_all(constant(11, 10, 12)).fastest == kCpu);
  CHECK(compare_all(constant(12, 11, 10)).fastest == kGpu);
  const Outcome outcome = compare_all(constant(10, 11, 12));
  CHECK(outcome.median_ms == std::array{10.0, 11.0, 12.0});
  CHECK(outcome.runs == std::array{16, 8, 8});  // in each pair an uncounted round and three others
}

TEST_CASE("who is slower takes no more turns") {
  CHECK(compare_all(constant(11, 10, 12)).runs == std::array{8, 16, 8});
}

TEST_CASE("where nobody is faster the first stays, after so many rounds") {
  const Outcome draw = compare(kPlan, {kCpu}, constant(10, 10, 10));
  CHECK(draw.fastest == kPlan);
  CHECK(draw.runs == std::array{20, 20, 0});  // an uncounted round and nine others
  // Each is the faster in every other round.
  const Outcome noise = compare(kPlan, {kCpu}, [](size_t candidate, int run, int) {
    return (run / 4 % 2 == 0) == (candidate == kPlan) ? 10.0 : 14.0;
  });
  CHECK(noise.fastest == kPlan);
  CHECK(noise.runs == std::array{20, 20, 0});
}

TEST_CASE("who is much slower drops out") {
  const Outcome outcome = compare_all(constant(10, 10.5, 100));
  CHECK(outcome.runs == std::array{14, 8, 6});  // 6: an uncounted round and two others
  CHECK(outcome.median_ms[2] == 100.0);
  const Outcome alone = compare_all(constant(100, 10, 100));
  CHECK(alone.fastest == kCpu);
  CHECK(alone.runs == std::array{6, 12, 6});
}

TEST_CASE("only candidates run") {
  const Outcome outcome = compare(kCpu, {kGpu}, constant(1, 11, 10));
  CHECK(outcome.fastest == kGpu);
  CHECK(outcome.runs[0] == 0);
  CHECK(outcome.median_ms[0] == 0.0);
  CHECK(Comparison(kCpu, {}).is_over());
}

TEST_CASE("another candidate that cannot run is left out") {
  Comparison comparison(kPlan, kBoth);
  comparison.record(10.0);
  comparison.drop_other();
  CHECK(!comparison.is_over());
  CHECK(comparison.other() == kGpu);
  CHECK(comparison.next() == kPlan);
  comparison.drop_other();
  CHECK(comparison.is_over());
  CHECK(comparison.next() == kPlan);
}

TEST_CASE("small networks have longer turns") {
  const Outcome outcome = compare_all(constant(0.5, 0.6, 0.7));
  CHECK(outcome.runs == std::array{64, 28, 24});  // turns of 4 ms
}

TEST_CASE("what does not last does not decide") {
  const auto disturbed = [](const Times& disturbance) {
    return compare_all([&](size_t candidate, int run, int of_turn) {
             return constant(10, 11, 12)(candidate, run, of_turn) + disturbance(candidate, run, of_turn);
           })
        .fastest;
  };
  // A slow first round.
  CHECK(disturbed([](size_t candidate, int run, int) { return candidate == kPlan && run < 4 ? 500 : 0; }) ==
        kPlan);
  // First runs of turns.
  CHECK(disturbed([](size_t candidate, int, int of_turn) {
          return candidate == kPlan && of_turn == 0 ? 500 : 0;
        }) == kPlan);
  // Two rounds.
  CHECK(disturbed([](size_t candidate, int run, int) {
          return candidate == kPlan && run >= 4 && run < 12 ? 4 : 0;
        }) == kPlan);
}

/// The runs, of this time each, until a watch says that they are slow; 1000 where it does not.
int runs_until_slow(SlownessWatch& watch, double milliseconds, double others_ms) {
  for (int run = 1; run < 1000; ++run)
    if (watch.has_become_slow(milliseconds, others_ms)) return run;
  return 1000;
}

TEST_CASE("who stays slower than the others were has become slow, and is given longer each time") {
  SlownessWatch watch;
  CHECK(runs_until_slow(watch, 12, 10) == 1000);
  CHECK(runs_until_slow(watch, 13, 10) == 8);
  CHECK(runs_until_slow(watch, 13, 10) == 16);
  CHECK(runs_until_slow(watch, 13, std::numeric_limits<double>::infinity()) == 1000);
  CHECK(runs_until_slow(watch, 13, 10) == 32);
}

TEST_CASE("one quick run, and nobody has become slow") {
  SlownessWatch watch;
  for (int run = 0; run < 100; ++run) CHECK(!watch.has_become_slow(run % 8 == 7 ? 10 : 50, 10));
}

}  // namespace
