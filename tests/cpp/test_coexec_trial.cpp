// Trials of plans: who wins, who drops out, and what does not decide.
#include <array>
#include <cstdio>
#include <functional>
#include <string>

#include "claims.h"
#include "coexec/trial.h"

namespace {

using phonebit::engine::coexec::kRunners;
using phonebit::engine::coexec::Runner;
using phonebit::engine::coexec::Trial;

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
  expect(trial.is_over(), "a trial ends");
  outcome.winner = trial.next();
  trial.record(1e-3);
  expect(trial.next() == outcome.winner, "what comes after the end decides nothing");
  for (size_t i = 0; i < kRunners; ++i) outcome.median_ms[i] = trial.median_ms(static_cast<Runner>(i));
  return outcome;
}

Times constant(double plan, double cpu, double gpu) {
  return [=](Runner runner, int, int) { return std::array{plan, cpu, gpu}[static_cast<size_t>(runner)]; };
}

void the_fastest_wins() {
  expect(hold(kAll, constant(10, 11, 12)).winner == Runner::plan, "the plan is the fastest");
  expect(hold(kAll, constant(11, 10, 12)).winner == Runner::cpu, "the CPU is the fastest");
  expect(hold(kAll, constant(12, 11, 10)).winner == Runner::gpu, "the GPU is the fastest");
  expect(hold(kAll, constant(10, 10, 10)).winner == Runner::plan, "the plan wins a draw");
  const Outcome outcome = hold(kAll, constant(10, 11, 12));
  expect(outcome.median_ms == std::array{10.0, 11.0, 12.0}, "medians are told");
}

void who_is_hopeless_drops_out() {
  const Outcome outcome = hold(kAll, constant(10, 10.5, 100));
  expect(outcome.passes == std::array{16, 16, 6}, "the GPU has an uncounted round and two others");
  expect(outcome.median_ms[2] == 100.0, "what it took is told");
  const Outcome alone = hold(kAll, constant(100, 10, 100));
  expect(alone.winner == Runner::cpu && alone.passes[1] == 6, "one who is left wins at once");
}

void only_contestants_run() {
  const Outcome outcome = hold({false, true, true}, constant(1, 11, 10));
  expect(outcome.winner == Runner::gpu && outcome.passes[0] == 0, "without a plan on both");
  expect(outcome.median_ms[0] == 0.0, "of who took no part nothing is told");
  expect(hold({true, true, false}, constant(11, 10, 1)).winner == Runner::cpu, "without the GPU");
}

void small_networks_have_longer_turns() {
  const Outcome outcome = hold(kAll, constant(0.5, 0.6, 0.7));
  expect(outcome.passes == std::array{64, 56, 48}, "turns of 4 ms");
}

void what_passes_does_not_decide() {
  const auto disturbed = [](const Times& disturbance) {
    return hold(kAll,
                [&](Runner runner, int pass, int of_turn) {
                  return constant(10, 11, 12)(runner, pass, of_turn) + disturbance(runner, pass, of_turn);
                })
        .winner;
  };
  expect(disturbed([](Runner runner, int pass, int) {
           return runner == Runner::plan && pass < 6 ? 500 : 0;
         }) == Runner::plan,
         "a slow first round");
  expect(disturbed([](Runner runner, int, int of_turn) {
           return runner == Runner::plan && of_turn == 0 ? 500 : 0;
         }) == Runner::plan,
         "first passes of turns");
  expect(disturbed([](Runner runner, int pass, int) {
           return runner == Runner::plan && pass >= 18 && pass < 36 ? 5 : 0;
         }) == Runner::plan,
         "three turns of seven that were disturbed");
}

}  // namespace

int main() {
  the_fastest_wins();
  who_is_hopeless_drops_out();
  only_contestants_run();
  small_networks_have_longer_turns();
  what_passes_does_not_decide();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
