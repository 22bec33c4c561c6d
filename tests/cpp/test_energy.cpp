// Energy sources on machines made of files, what readings add up to, and the meter's thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check_error.h"
#include "energy/energy_meter.h"
#include "energy/energy_source.h"
#include "energy/energy_trace.h"
#include "energy/growing_counter.h"
#include "energy/sysfs_sources.h"
#include "parameters.h"
#include "temporary_folder.h"
#include "types/error.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using namespace phonebit::engine::energy;
using Clock = std::chrono::steady_clock;

std::mt19937 random_number;

void check_near(double got, double expected, double tolerance, const std::string& claim) {
  CHECK_MESSAGE(std::fabs(got - expected) <= tolerance, claim, ": ", got, ", expected ", expected);
}

double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// Long enough for some readings on a busy machine.
constexpr double kMomentS = 0.2;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// A root of a file system.
class Machine {
 public:
  /// Replaces a file at once, so that no reader sees half of it.
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root + "/" + name, draft = root + "/draft";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(draft) << text;
    std::filesystem::rename(draft, path);
  }

 private:
  TemporaryFolder folder_;

 public:
  const std::string root = folder_.path();
};

const std::string kPackage = "sys/class/powercap/intel-rapl:0/";
const std::string kMeter = "sys/bus/iio/devices/iio:device0/energy_value";
const std::string kBattery = "sys/class/power_supply/battery/";

void add_package(Machine& machine, const std::string& energy_uj, const std::string& largest_uj) {
  machine.write(kPackage + "name", "package-0\n");
  machine.write(kPackage + "energy_uj", energy_uj);
  machine.write(kPackage + "max_energy_range_uj", largest_uj);
}

std::unique_ptr<Source> find_package(const Machine& machine) {
  return std::move(find_rapl(machine.root).front());
}

void add_phone(Machine& machine, const std::string& status) {
  machine.write(kBattery + "type", "Battery\n");
  machine.write(kBattery + "status", status + "\n");
  machine.write(kBattery + "current_now", "-500000\n");
  machine.write(kBattery + "voltage_now", "4000000\n");
  machine.write("sys/class/power_supply/usb/type", "USB\n");
}

TEST_CASE("counters that wrap are followed") {
  random_number.seed(test_seed());
  for (int round = 0; round < 1000; ++round) {
    const auto modulus = static_cast<int64_t>(1 + random_number() % (round % 2 == 0 ? 100 : 1u << 31));
    const auto start = static_cast<int64_t>(random_number());
    GrowingCounter counter("here", modulus);
    int64_t truth = start;
    counter.advance(truth % modulus);
    for (int step = 0; step < 30; ++step) {
      truth += static_cast<int64_t>(random_number()) % modulus;  // less than a turn
      CHECK(counter.advance(truth % modulus) == truth - start);
    }
  }
  GrowingCounter endless("rail X", std::nullopt), small("rail Y", 100);
  endless.advance(10);
  check_error(ErrorCode::device, {"rail X", "went backwards", "got 9"}, "a counter that does not wrap",
              [&] { endless.advance(9); });
  check_error(ErrorCode::device, {"rail Y", "expected 0 to 99", "got 100"}, "a counter beyond its range",
              [&] { small.advance(100); });
  check_error(ErrorCode::device, {"rail Y", "out of its range", "got -1"}, "a counter below its range",
              [&] { small.advance(-1); });
}

#if defined(__x86_64__)
TEST_CASE("rapl is looked for") {
  Machine machine;
  check_error(ErrorCode::device, {"no source", "rapl: ", "powercap"}, "no packages",
              [&] { choose("", machine.root); });
}
#endif

TEST_CASE("odpm reads both forms") {
  Machine machine;
  machine.write(kMeter, "t=473848\nCH0(T=473848)[S10M_VDD_TPU], 3000\nCH1(T=473848)[VSYS_PWR_MODEM], 7\n");
  machine.write("sys/bus/iio/devices/iio:device1/energy_value", "473848\nS1C, 5\n");
  const auto source = choose("odpm", machine.root);
  const std::vector<Rail>& rails = source->info().rails;
  REQUIRE(rails.size() == 3);
  CHECK(rails[0].name == "S10M_VDD_TPU");
  CHECK(rails[2].name == "S1C");
  machine.write(kMeter, "t=473900\nCH0(T=473900)[S10M_VDD_TPU], 5500\nCH1(T=473900)[VSYS_PWR_MODEM], 7\n");
  check_near(source->read()[0], 2.5, 1e-12, "a rail's energy");
  for (const char* line : {"CH0(T=1)[A] 5", "CH0(T=1)[A], -5", "CH0(T=1[A], 5", "CH0[A, 5", "[], 5", ", 5"}) {
    machine.write(kMeter, std::string("t=1\n") + line);
    check_error(ErrorCode::device, {"energy_value", "a line that is no rail", line}, "a line of another form",
                [&] { source->read(); });
  }
  machine.write(kMeter, "t=1\nCH0(T=1)[OTHER], 5");
  check_error(ErrorCode::device, {"rail S10M_VDD_TPU has vanished"}, "a rail that vanished",
              [&] { source->read(); });
}

TEST_CASE("batteries must discharge") {
  Machine machine;
  add_phone(machine, "Discharging");
  const auto source = choose("battery", machine.root);
  check_near(source->read()[0], 2000.0, 1e-9, "current times voltage");
  CHECK(!source->info().is_counter);
  CHECK(source->info().rails[0].name == "battery");
  add_phone(machine, "Charging");
  check_error(ErrorCode::device, {"status", "got Charging", "unplug the charger"}, "a charger that comes",
              [&] { source->read(); });
  check_error(ErrorCode::device, {"not measured: no source", "ina: ", "odpm: ", "battery: ", "Charging"},
              "no source at all", [&] { choose("", machine.root); });
}

TEST_CASE("a source that is not there is named with those that are") {
  Machine machine;
  add_phone(machine, "Discharging");
  check_error(ErrorCode::device, {"energy source 'sun'", "no source", "ina: ", "choose one of battery"},
              "a source that is not here", [&] { choose("sun", machine.root); });
  const std::vector<Finding> findings = discover(machine.root);
  CHECK(findings.size() >= 3);  // x86 has rapl, too
  for (const Finding& finding : findings) {
    const bool is_there = finding.kind == "battery";
    CHECK_MESSAGE(finding.sources.empty() != is_there, finding.kind);
    CHECK_MESSAGE(finding.absent.empty() == is_there, finding.kind);
  }
}

TEST_CASE("power is integrated by trapezoids") {
  Trace trace({true, false}, false, 0.0);
  for (const double time : {0.0, 0.5, 2.0, 4.0, 4.5}) trace.add(time, {100 + 50 * time, 1e9 * time});
  const Span span = trace.span();
  check_near(span.energy_mj, 100 * 4.5 + 25 * 4.5 * 4.5, 1e-9, "linear power is integrated exactly");
  check_near(span.mean_mw(), 212.5, 1e-9, "mean power");
  check_near(span.rails_mj[1], 10.125e9, 1e-3, "a rail that does not count");
  check_near(span.step_mj, 500, 1e-9, "the largest step between two samples");
}

TEST_CASE("a counters step is what is seen and silence makes it grow") {
  Trace trace({true, false}, true, 1.0);
  double part_mj = 0.0;  // moves with every reading, and does not count
  for (int i = 0; i <= 500; ++i) trace.add(0.02 * i, {5e6 + 30.0 * std::floor(i / 5.0), part_mj += 1});
  const Span span = trace.span();
  check_near(span.energy_mj, 3000, 1e-6, "a counter's energy");
  check_near(span.step_mj, 30, 1e-6, "a counter's step");
  check_near(span.uncertainty(), 0.01, 1e-9, "one step as a share");
  check_near(span.update_s(), 0.1, 1e-9, "time between changes");
  trace.add(14.9, {5e6 + 3000, part_mj += 1});
  CHECK_MESSAGE(!trace.span().has_stopped, "a source that is silent for less than 5 s");
  check_near(trace.span().uncertainty(), 0.49, 0.001, "silence makes the uncertainty grow");
  trace.add(15.1, {5e6 + 3000, part_mj += 1});
  CHECK_MESSAGE(trace.span().has_stopped, "a source that is silent for more than 5 s has stopped");
}

/// A trace of one rail, read every `period_s` for some seconds.
Span span_of(bool is_counter, double seconds, double period_s, const std::function<double(double)>& reading,
             double unit_mj = 0.0) {
  Trace trace({true}, is_counter, unit_mj);
  for (int i = 0; i <= std::lround(seconds / period_s); ++i) trace.add(i * period_s, {reading(i * period_s)});
  return trace.span();
}

TEST_CASE("a wave of power is integrated within the trapezoids bound") {
  for (const double period_s : {0.1, 0.05, 0.01}) {
    const Span span = span_of(false, 7.0, period_s, [](double t) { return 1000 + 500 * std::sin(t); });
    const double bound =
        7.0 * period_s * period_s / 12 * 500;  // window * h^2 / 12 * largest second derivative
    check_near(span.energy_mj, 1000 * 7 + 500 * (1 - std::cos(7.0)), bound, "energy");
    check_near(span.step_mj, 1500 * period_s, 150 * period_s, "step");
  }
  Trace uneven({true}, false, 0.0);
  for (const auto& [time, power] : {std::pair{0.0, 10.0}, {1.0, 10.0}, {5.0, 30.0}, {5.5, 30.0}})
    uneven.add(time, {power});
  CHECK(uneven.span().energy_mj == 10 * 1 + 20 * 4 + 30 * 0.5);
}

TEST_CASE("what is known of slow, frozen and silent sources") {
  CHECK(span_of(true, 4.0, 1.0, [](double t) { return t; }, 3.0).step_mj == 3.0);  // at least the unit
  const Span slow = span_of(true, 59.0, 0.02, [](double t) { return 100.0 * std::floor(t / 20.0 + 1e-9); });
  CHECK_FALSE(slow.has_stopped);  // the last change was at 40 s
  CHECK(slow.changes == 2);
  CHECK(slow.uncertainty() > 0.4);
  const auto frozen = [](double seconds) {
    return span_of(true, seconds, 0.02, [](double t) { return 1000.0 * std::min(t, 1.0); });
  };
  CHECK(frozen(1.02).uncertainty() < 0.03);
  check_near(frozen(1.5).uncertainty(), 0.5, 0.025, "half of the energy may be unseen");
  CHECK(frozen(3.0).uncertainty() == 1.0);
  for (const bool is_counter : {true, false}) {
    const Span still = span_of(is_counter, 10.0, 10.0, [](double) { return 7.0; });
    CHECK(still.energy_mj == (is_counter ? 0.0 : 70.0));
    CHECK(still.changes == 0);
    CHECK(still.uncertainty() == 1.0);
  }
}

TEST_CASE("a trace refuses what is no reading of its source") {
  Trace trace({true, false}, true, 0.0);
  check_error(ErrorCode::input, {"got 0 readings, expected two or more"}, "none", [&] { trace.span(); });
  check_error(ErrorCode::input, {"got 1 values, expected 2"}, "one rail", [&] { trace.add(0.0, {1.0}); });
}

/// A source of one rail that a function of time makes.
class FormulaSource : public Source {
 public:
  FormulaSource(bool is_counter, std::function<double(double)> formula, double period_s)
      : Source({"formula", "a formula", is_counter, 0.0, period_s, {{"all"}}}),
        formula_(std::move(formula)) {}
  std::vector<double> read() override { return {formula_(now_s())}; }

 private:
  std::function<double(double)> formula_;
};

Meter meter_of(bool is_counter, std::function<double(double)> formula, double answer_s = 5.0,
               double period_s = 0.002) {
  return Meter(std::make_unique<FormulaSource>(is_counter, std::move(formula), period_s), answer_s);
}

/// A thread moves a package's counter at a known power; it is measured through files.
TEST_CASE("a counter at a known power is measured within its resolution") {
  constexpr double kPowerMw = 3000.0;
  Machine machine;
  add_package(machine, "65000000\n", "65532610\n");  // wraps after 0.2 s
  std::atomic<bool> is_done{false};
  double longest_gap_s = 0.0;
  const double begin = now_s();
  std::thread processor([&] {
    for (double shown = begin; !is_done; sleep_s(0.003)) {
      const double now = now_s();
      const auto energy_uj = 65000000 + static_cast<int64_t>((now - begin) * kPowerMw * 1e3);
      machine.write(kPackage + "energy_uj", std::to_string(energy_uj % 65532611));
      longest_gap_s = std::max(longest_gap_s, now_s() - shown);
      shown = now;
    }
  });
  Meter meter(find_package(machine));
  const double before_start = now_s();
  meter.start();
  const double after_start = now_s();
  sleep_s(0.5);
  const double before_stop = now_s();
  const Span span = meter.stop();
  const double after_stop = now_s();
  is_done = true;
  processor.join();
  CHECK(span.window_s >= before_stop - after_start);
  CHECK(span.window_s <= after_stop - before_start);
  // A busy machine may hold up the counter, or the meter between looking at the clock and reading.
  const double held_up_s = after_start - before_start + after_stop - before_stop;
  const double allowed_mj = std::max(span.step_mj, kPowerMw * longest_gap_s) + kPowerMw * held_up_s;
  check_near(span.mean_mw(), kPowerMw, allowed_mj / span.window_s, "mean power");
  CHECK(span.step_mj > 0.0);
  CHECK(span.changes > 2);
}

TEST_CASE("a meter goes on after a reading and forgets at a start") {
  Meter meter = meter_of(true, [](double now) { return 1e3 * now; });
  check_error(ErrorCode::input, {"has not been started"}, "reading before a start", [&] { meter.read(); });
  check_error(ErrorCode::input, {"has not been started"}, "stopping before a start", [&] { meter.stop(); });
  meter.start();
  sleep_s(kMomentS);
  const Span first = meter.read();
  sleep_s(kMomentS);
  const Span second = meter.read();
  CHECK(second.window_s > first.window_s);
  CHECK(second.energy_mj > first.energy_mj);
  const double restart = now_s();
  meter.start();
  sleep_s(kMomentS);
  const Span after_restart = meter.stop();
  CHECK(after_restart.window_s <= now_s() - restart);
  check_error(ErrorCode::input, {"has not been started"}, "reading after a stop", [&] { meter.read(); });
  meter.start();
  sleep_s(kMomentS);
  CHECK(meter.stop().energy_mj > 0.0);
}

TEST_CASE("a slow pace does not hold up a reading") {
  Meter meter = meter_of(true, [](double now) { return now; }, 5.0, 60.0);
  meter.start();
  check_error(ErrorCode::device, {"nothing new", "1 changes"}, "one change is none", [&] { meter.read(); });
  CHECK(meter.read().changes == 2);
}

TEST_CASE("sources that fail or never move are reported") {
  Meter frozen = meter_of(false, [](double) { return 7.0; });
  frozen.start();
  sleep_s(kMomentS);
  check_error(ErrorCode::device, {"formula", "nothing new", "0 changes"}, "a source that never moves",
              [&] { frozen.stop(); });
  check_error(ErrorCode::input, {"has not been started"}, "reading after a stop that failed",
              [&] { frozen.read(); });
  int readings = 0;
  Meter failing = meter_of(true, [&](double now) {
    if (++readings == 3) throw Error(ErrorCode::device, "here: gone");
    return now;
  });
  failing.start();
  sleep_s(kMomentS);
  check_error(ErrorCode::device, {"here: gone"}, "a source that fails", [&] {
    failing.read();
    failing.read();
  });
  check_error(ErrorCode::device, {"here: gone"}, "stopping after a failure", [&] { failing.stop(); });
  failing.start();
  sleep_s(kMomentS);
  CHECK(failing.stop().changes >= 2);
}

TEST_CASE("a source that hangs does not hang the caller") {
  const auto is_released = std::make_shared<std::atomic<bool>>(false);
  {
    Meter meter = meter_of(
        true,
        [is_released](double now) {
          while (!*is_released) sleep_s(0.001);
          return now;
        },
        0.05);
    check_error(ErrorCode::device, {"formula", "does not answer", "within 0.05 s"}, "a source that hangs",
                [&] { meter.start(); });
    check_error(ErrorCode::device, {"does not answer"}, "stopping while it hangs", [&] { meter.stop(); });
    check_error(ErrorCode::device, {"does not answer"}, "starting while it hangs", [&] { meter.start(); });
  }
  *is_released = true;
  sleep_s(0.05);
}

}  // namespace
