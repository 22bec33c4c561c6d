// Trials of plans: who wins, who drops out, and what does not decide.
#include <array>
#include <functional>

#include "coexec/trial.h"
#include "doctest_strings.h"

namespace {

using namespace phonebit::engine;
using coexec::kRunners;
using coexec::Runner;
using coexec::Trial;

constexpr std::array kAll{true, true, true};

struct Outcome {
  Runner winner;
  std::array<int, kRunners> passes;
  std::array<double, kRunners> median_ms;
};

/// Milliseconds of a pass: of whom, and how many passes there were before, in all and of this turn.
using Times = std::function<double(Runner runner, int pass, int of_turn)>;

Outcome hold(const std::array<bool, kRunners>& takes_part, const Times& times) {
  Trial trial(takes_part);
  Outcome outcome{};
  Runner last = trial.next();
  for (int pass = 0, of_turn = 0; !trial.is_over() && pass < 10000; ++pass, ++of_turn) {
    const Runner runner = trial.next();
    if (runner != last) of_turn = 0;
    last = runner;
    ++outcome.passes[static_cast<size_t>(runner)];
    trial.record(times(runner, pass, of_turn));
  }
  CHECK(trial.is_over());
  outcome.winner = trial.next();
  trial.record(1e-3);
  CHECK(trial.next() == outcome.winner);  // what comes after the end decides nothing
  for (size_t i = 0; i < kRunners; ++i) outcome.median_ms[i] = trial.median_ms(static_cast<Runner>(i));
  return outcome;
}

Times constant(double plan, double cpu, double gpu) {
  return [=](Runner runner, int, int) { return std::array{plan, cpu, gpu}[static_cast<size_t>(runner)]; };
}

TEST_CASE("the fastest wins") {
  CHECK(hold(kAll, constant(10, 11, 12)).winner == Runner::plan);
  CHECK(hold(kAll, constant(11, 10, 12)).winner == Runner::cpu);
  CHECK(hold(kAll, constant(12, 11, 10)).winner == Runner::gpu);
  CHECK(hold(kAll, constant(10, 10, 10)).winner == Runner::plan);  // which wins a draw
  const Outcome outcome = hold(kAll, constant(10, 11, 12));
  CHECK(outcome.median_ms == std::array{10.0, 11.0, 12.0});
}

TEST_CASE("who is hopeless drops out") {
  const Outcome outcome = hold(kAll, constant(10, 10.5, 100));
  CHECK(outcome.passes == std::array{16, 16, 6});  // 6: an uncounted round and two others
  CHECK(outcome.median_ms[2] == 100.0);
  const Outcome alone = hold(kAll, constant(100, 10, 100));
  CHECK(alone.winner == Runner::cpu);
  CHECK(alone.passes[1] == 6);
}

TEST_CASE("only contestants run") {
  const Outcome outcome = hold({false, true, true}, constant(1, 11, 10));
  CHECK(outcome.winner == Runner::gpu);
  CHECK(outcome.passes[0] == 0);
  CHECK(outcome.median_ms[0] == 0.0);
  CHECK(hold({true, true, false}, constant(11, 10, 1)).winner == Runner::cpu);
}

TEST_CASE("small networks have longer turns") {
  const Outcome outcome = hold(kAll, constant(0.5, 0.6, 0.7));
  CHECK(outcome.passes == std::array{64, 56, 48});  // turns of 4 ms
}

TEST_CASE("what passes does not decide") {
  const auto disturbed = [](const Times& disturbance) {
    return hold(kAll,
                [&](Runner runner, int pass, int of_turn) {
                  return constant(10, 11, 12)(runner, pass, of_turn) + disturbance(runner, pass, of_turn);
                })
        .winner;
  };
  // A slow first round.
  CHECK(disturbed([](Runner runner, int pass, int) {
          return runner == Runner::plan && pass < 6 ? 500 : 0;
        }) == Runner::plan);
  // First passes of turns.
  CHECK(disturbed([](Runner runner, int, int of_turn) {
          return runner == Runner::plan && of_turn == 0 ? 500 : 0;
        }) == Runner::plan);
  // Three turns of seven.
  CHECK(disturbed([](Runner runner, int pass, int) {
          return runner == Runner::plan && pass >= 18 && pass < 36 ? 5 : 0;
        }) == Runner::plan);
}

}  // namespace
