#include "bench_energy.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>
#include <utility>

#include "energy/energy_meter.h"
#include "measure/noise_probe.h"
#include "measure/statistics.h"
#include "types/error.h"

namespace phonebit::tools {
namespace {

namespace energy = engine::energy;
using engine::measure::now_ms;

// As phonebit/energy/meter.py has them.
constexpr double fine_enough = 0.01, idle_fine_enough = 0.03;
constexpr double warm_up_ms = 500.0, settle_ms = 2000.0, nap_ms = 50.0;
constexpr double min_s = 3.0, longest_s = 60.0;

void sleep_ms(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

bool sees(const EnergySourceInfo& source, const std::string& device) {
  const bool is_cpu = device.rfind("cpu", 0) == 0;
  return is_cpu || source.name.rfind("rapl", 0) != 0;
}

/// The first source that sees the device; absent where there is none, and then `outcome` tells why.
std::optional<EnergySourceInfo> choose_source(const std::string& device, EnergyOutcome& outcome) {
  for (const EnergySourceInfo& source : checked(energy_sources())) {
    if (source.is_available && sees(source, device)) return source;
    outcome.sources.emplace_back(
        source.name, source.is_available ? "sees only a processor's package" : source.description);
  }
  outcome.error = "not measured: no source";
  return std::nullopt;
}

EnergySourceInfo named_source(const std::string& name) {
  std::string names;
  for (const EnergySourceInfo& source : checked(energy_sources())) {
    if (source.is_available && source.name == name) return source;
    if (source.is_available) names += (names.empty() ? "" : ", ") + source.name;
  }
  fail("--energy-source: there is no source '%s' here, only: %s", name.c_str(),
       names.empty() ? "none" : names.c_str());
}

void measure_with(EnergyOutcome& outcome, const EnergySettings& settings, int batch,
                  const std::function<void()>& work) {
  try {
    energy::Meter meter(energy::choose(outcome.source.name));
    outcome.rails = meter.info().rails;
    const energy::Readings readings{meter.info().name, [&] { meter.start(); }, [&] { return meter.peek(); }};
    const auto measure = [&](const std::function<void()>& body, double max_uncertainty) {
      const energy::WindowLimits limits{settings.seconds, std::max(settings.seconds, longest_s),
                                        max_uncertainty};
      return energy::measure_window(readings, limits, body, engine::measure::now_s);
    };
    if (settings.has_idle) {
      sleep_ms(settle_ms);
      outcome.idle = measure([] { sleep_ms(nap_ms); }, idle_fine_enough).span;
    }
    const double begin = now_ms();
    do work();
    while (now_ms() - begin < warm_up_ms);
    const energy::Window window = measure(work, fine_enough);
    outcome.busy = window.span;
    outcome.frames = batch * window.calls;
    outcome.is_measured = true;
  } catch (const engine::Error& error) {
    throw Failure(error.what());
  }
}

/// Numbers of a measurement, and of what it takes above idling; NaN: not known.
struct Derived {
  double fps, mj_per_frame;
  double net_mw, net_mj_per_frame, net_uncertainty;
};

Derived derive(const EnergyOutcome& outcome) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const energy::Span& busy = outcome.busy;
  const double frames = static_cast<double>(outcome.frames);
  Derived found{frames / busy.window_s, busy.energy_mj / frames, unknown, unknown, unknown};
  if (!outcome.idle) return found;
  const energy::Span& idle = *outcome.idle;
  found.net_mw = busy.mean_mw() - idle.mean_mw();
  const double error_mw = busy.step_mj / busy.window_s + idle.step_mj / idle.window_s;
  if (found.net_mw <= error_mw) return found;  // the work cannot be told from idling
  found.net_mj_per_frame = found.net_mw / found.fps;
  found.net_uncertainty = error_mw / found.net_mw;
  return found;
}

}  // namespace

EnergySettings energy_settings(const Arguments& arguments) {
  std::optional<std::string> source = arguments.text("--energy-source");
  if (source == "auto") source = std::nullopt;
  return {std::move(source), arguments.real("--energy-seconds", min_s, 0.01, 3600.0),
          !arguments.has("--no-idle")};
}

EnergyOutcome measure_energy(const EnergySettings& settings, const std::string& device, int batch,
                             const std::function<void()>& work) {
  EnergyOutcome outcome{};
  if (settings.source) {
    outcome.source = named_source(*settings.source);
    outcome.chosen = "as asked";
    measure_with(outcome, settings, batch, work);
    return outcome;
  }
  const std::optional<EnergySourceInfo> source = choose_source(device, outcome);
  if (!source) return outcome;
  outcome.source = *source;
  outcome.chosen = "it sees " + device;
  try {
    measure_with(outcome, settings, batch, work);
  } catch (const Failure& failure) {
    outcome.error = failure.what();
  }
  return outcome;
}

void write_energy(JsonWriter& json, const EnergyOutcome& outcome) {
  json.key("energy").begin_object();
  json.flag("measured", outcome.is_measured);
  if (!outcome.is_measured) {
    json.text("reason", "not measured: no source").text("error", outcome.error);
    json.key("sources").begin_object();
    for (const auto& [kind, why] : outcome.sources) json.text(kind, why);
    json.end_object();
    json.end_object();
    return;
  }
  const energy::Span& busy = outcome.busy;
  const Derived found = derive(outcome);
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  json.text("source", outcome.source.name).text("description", outcome.source.description);
  json.text("chosen", outcome.chosen).text("kind", outcome.source.is_counter ? "counter" : "power");
  json.key("rails_mj").begin_object();
  for (size_t i = 0; i < outcome.rails.size(); ++i)
    json.real(outcome.rails[i].name.c_str(), busy.rails_mj[i]);
  json.end_object().key("counted").begin_array();
  for (const energy::Rail& rail : outcome.rails)
    if (rail.is_counted) json.text(rail.name);
  json.end_array().real("update_ms", 1e3 * busy.update_s());
  json.real("resolution_mj", busy.step_mj).real("window_s", busy.window_s);
  json.real("idle_window_s", outcome.idle ? outcome.idle->window_s : unknown);
  json.whole("frames", outcome.frames).real("energy_mj", busy.energy_mj).real("mean_mw", busy.mean_mw());
  json.real("idle_mw", outcome.idle ? outcome.idle->mean_mw() : unknown);
  json.real("mj_per_frame", found.mj_per_frame).real("fps", found.fps);
  json.real("fps_per_watt", 1e3 / found.mj_per_frame).real("uncertainty", busy.uncertainty());
  json.real("net_mw", found.net_mw).real("net_mj_per_frame", found.net_mj_per_frame);
  json.real("net_fps_per_watt", 1e3 / found.net_mj_per_frame).real("net_uncertainty", found.net_uncertainty);
  json.end_object();
}

void print_energy(const EnergyOutcome& outcome) {
  if (!outcome.is_measured) {
    std::printf("energy %s\n", outcome.error.c_str());
    for (const auto& [kind, why] : outcome.sources) std::printf("       %s: %s\n", kind.c_str(), why.c_str());
    return;
  }
  const Derived found = derive(outcome);
  std::printf("energy %.4g mW, %.4g mJ/frame, %.4g FPS/W (+-%.1f %% by resolution)\n", outcome.busy.mean_mw(),
              found.mj_per_frame, 1e3 / found.mj_per_frame, 100.0 * outcome.busy.uncertainty());
  if (outcome.idle && found.net_mj_per_frame > 0.0)
    std::printf("       idle %.4g mW; above it %.4g mW, %.4g mJ/frame (+-%.1f %%)\n", outcome.idle->mean_mw(),
                found.net_mw, found.net_mj_per_frame, 100.0 * found.net_uncertainty);
  else if (outcome.idle)
    std::printf("       idle %.4g mW: the work cannot be told from it\n", outcome.idle->mean_mw());
  std::printf("       source %s (%s): %s; %.1f s, %lld frames\n", outcome.source.name.c_str(),
              outcome.chosen.c_str(), outcome.source.description.c_str(), outcome.busy.window_s,
              static_cast<long long>(outcome.frames));
}

}  // namespace phonebit::tools
