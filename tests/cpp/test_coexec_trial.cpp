// Trials of plans: who wins, who drops out, and what does not decide.
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "coexec/trial.h"
#include "doctest_strings.h"

namespace {

using namespace phonebit::engine;
using coexec::kRunners;
using coexec::Runner;
using coexec::SlownessWatch;
using coexec::Trial;

struct Outcome {
  Runner winner;
  std::array<int, kRunners> passes;
  std::array<double, kRunners> median_ms;
};

/// Milliseconds of a pass: of whom, and how many passes there were before, in all and of this turn.
using Times = std::function<double(Runner runner, int pass, int of_turn)>;

const std::vector<Runner> kBoth{Runner::cpu, Runner::gpu};

Outcome hold(Runner champion, const std::vector<Runner>& rivals, const Times& times) {
  Trial trial(champion, rivals);
  Outcome outcome{};
  Runner last = trial.next();
  for (int pass = 0, of_turn = 0; !trial.is_over() && pass < 10000; ++pass, ++of_turn) {
    const Runner runner = trial.next();
    CHECK((runner == trial.champion() || runner == trial.rival()));
    if (runner != last) of_turn = 0;
    last = runner;
    ++outcome.passes[static_cast<size_t>(runner)];
    trial.record(times(runner, pass, of_turn));
  }
  CHECK(trial.is_over());
  outcome.winner = trial.next();
  CHECK(outcome.winner == trial.champion());
  trial.record(1e-3);
  CHECK(trial.next() == outcome.winner);  // what comes after the end decides nothing
  for (size_t i = 0; i < kRunners; ++i) outcome.median_ms[i] = trial.median_ms(static_cast<Runner>(i));
  return outcome;
}

Outcome hold_all(const Times& times) { return hold(Runner::plan, kBoth, times); }

Times constant(double plan, double cpu, double gpu) {
  return [=](Runner runner, int, int) { return std::array{plan, cpu, gpu}[static_cast<size_t>(runner)]; };
}

TEST_CASE("the fastest wins") {
  CHECK(hold_all(constant(10, 11, 12)).winner == Runner::plan);
  CHECK(hold_all(constant(11, 10, 12)).winner == Runner::cpu);
  CHECK(hold_all(constant(12, 11, 10)).winner == Runner::gpu);
  const Outcome outcome = hold_all(constant(10, 11, 12));
  CHECK(outcome.median_ms == std::array{10.0, 11.0, 12.0});
  CHECK(outcome.passes == std::array{16, 8, 8});  // in each duel an uncounted round and three others
}

TEST_CASE("a loser takes no more turns") {
  CHECK(hold_all(constant(11, 10, 12)).passes == std::array{8, 16, 8});
}

TEST_CASE("where nobody is faster the plan stays, after so many rounds") {
  const Outcome draw = hold(Runner::plan, {Runner::cpu}, constant(10, 10, 10));
  CHECK(draw.winner == Runner::plan);
  CHECK(draw.passes == std::array{20, 20, 0});  // an uncounted round and nine others
  // Each is the faster in every other round.
  const Outcome noise = hold(Runner::plan, {Runner::cpu}, [](Runner runner, int pass, int) {
    return (pass / 4 % 2 == 0) == (runner == Runner::plan) ? 10.0 : 14.0;
  });
  CHECK(noise.winner == Runner::plan);
  CHECK(noise.passes == std::array{20, 20, 0});
}

TEST_CASE("who is hopeless drops out") {
  const Outcome outcome = hold_all(constant(10, 10.5, 100));
  CHECK(outcome.passes == std::array{14, 8, 6});  // 6: an uncounted round and two others
  CHECK(outcome.median_ms[2] == 100.0);
  const Outcome alone = hold_all(constant(100, 10, 100));
  CHECK(alone.winner == Runner::cpu);
  CHECK(alone.passes == std::array{6, 12, 6});
}

TEST_CASE("only contestants run") {
  const Outcome outcome = hold(Runner::cpu, {Runner::gpu}, constant(1, 11, 10));
  CHECK(outcome.winner == Runner::gpu);
  CHECK(outcome.passes[0] == 0);
  CHECK(outcome.median_ms[0] == 0.0);
  CHECK(Trial(Runner::cpu, {}).is_over());
}

TEST_CASE("a rival that cannot run loses") {
  Trial trial(Runner::plan, kBoth);
  trial.record(10.0);
  trial.forfeit();
  CHECK(!trial.is_over());
  CHECK(trial.rival() == Runner::gpu);
  CHECK(trial.next() == Runner::plan);
  trial.forfeit();
  CHECK(trial.is_over());
  CHECK(trial.next() == Runner::plan);
}

TEST_CASE("small networks have longer turns") {
  const Outcome outcome = hold_all(constant(0.5, 0.6, 0.7));
  CHECK(outcome.passes == std::array{64, 28, 24});  // turns of 4 ms
}

TEST_CASE("what passes does not decide") {
  const auto disturbed = [](const Times& disturbance) {
    return hold_all([&](Runner runner, int pass, int of_turn) {
             return constant(10, 11, 12)(runner, pass, of_turn) + disturbance(runner, pass, of_turn);
           })
        .winner;
  };
  // A slow first round.
  CHECK(disturbed([](Runner runner, int pass, int) {
          return runner == Runner::plan && pass < 4 ? 500 : 0;
        }) == Runner::plan);
  // First passes of turns.
  CHECK(disturbed([](Runner runner, int, int of_turn) {
          return runner == Runner::plan && of_turn == 0 ? 500 : 0;
        }) == Runner::plan);
  // Two rounds.
  CHECK(disturbed([](Runner runner, int pass, int) {
          return runner == Runner::plan && pass >= 4 && pass < 12 ? 4 : 0;
        }) == Runner::plan);
}

/// The passes, of this time each, until a watch says that they are slow; 1000 where it does not.
int passes_until_slow(SlownessWatch& watch, double milliseconds, double rivals_ms) {
  for (int pass = 1; pass < 1000; ++pass)
    if (watch.has_become_slow(milliseconds, rivals_ms)) return pass;
  return 1000;
}

TEST_CASE("a winner that stays slower than its rivals were has become slow, and is given longer each time") {
  SlownessWatch watch;
  CHECK(passes_until_slow(watch, 12, 10) == 1000);
  CHECK(passes_until_slow(watch, 13, 10) == 8);
  CHECK(passes_until_slow(watch, 13, 10) == 16);
  CHECK(passes_until_slow(watch, 13, std::numeric_limits<double>::infinity()) == 1000);
  CHECK(passes_until_slow(watch, 13, 10) == 32);
}

TEST_CASE("one quick pass, and a winner has not become slow") {
  SlownessWatch watch;
  for (int pass = 0; pass < 100; ++pass) CHECK(!watch.has_become_slow(pass % 8 == 7 ? 10 : 50, 10));
}

}  // namespace
