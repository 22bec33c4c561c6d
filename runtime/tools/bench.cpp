// The default mode: times a network, inference by inference.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "bench_energy.h"
#include "engine.h"
#include "measurement.h"
#include "modes.h"
#include "printable.h"

namespace phonebit::tools {
namespace {

constexpr int max_profiled_runs = 100;
constexpr int max_runs = 10000000;
constexpr int max_batch = 4096;

/// A loaded network with the memory of one batch.
struct Loaded {
  Network network;
  std::vector<Bytes> inputs, outputs;

  void forward(int batch) { checked(network.forward(as_inputs(inputs), as_outputs(outputs), batch)); }
};

Loaded load(const Arguments& arguments, int batch) {
  Network network = load_network(arguments, engine_options(arguments));
  std::vector<Bytes> inputs = random_inputs(network.inputs(), batch);
  std::vector<Bytes> outputs = tensor_memory(network.outputs(), batch);
  return {std::move(network), std::move(inputs), std::move(outputs)};
}

/// Zeros on one processor.
CoexecInfo coexec_of(const Network& network) {
  const Result<CoexecInfo> info = network.coexec();
  return info ? info.value() : CoexecInfo{};
}

void time_inferences(Loaded& loaded, int runs, Measurement& result) {
  for (int inference = 0; inference < result.warmup || coexec_of(loaded.network).is_on_trial; ++inference)
    loaded.forward(result.batch);
  result.runs = measure::time_runs(runs, [&] { loaded.forward(result.batch); });
}

/// The number in a small file; absent where there is none.
std::optional<double> number_in(const std::string& path) {
  const std::string line = first_line(path);
  char* end = nullptr;
  const double number = std::strtod(line.c_str(), &end);
  if (line.empty() || *end != '\0') return std::nullopt;
  return number;
}

/// A place whose temperature is measured.
struct ThermalZone {
  std::string name;  // as the driver calls it: "cpu-1-0-usr", "skin"
  double celsius;
};

/// Zones that can be read now; none on a system that hides them.
std::vector<ThermalZone> thermal_zones() {
  const std::string folder = "/sys/class/thermal";
  std::vector<ThermalZone> zones;
  for (const std::string& name : names_in(folder)) {
    if (name.rfind("thermal_zone", 0) != 0) continue;
    const std::string zone = folder + "/" + name;
    const std::optional<double> millidegrees = number_in(zone + "/temp");
    if (!millidegrees) continue;
    const std::string type = first_line(zone + "/type");
    zones.push_back({type.empty() ? name : type, *millidegrees / 1000.0});
  }
  return zones;
}

/// Clock of a processor now, in MHz; 0: unknown.
int current_mhz(int processor) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor);
  return static_cast<int>(number_in(folder + "/cpufreq/scaling_cur_freq").value_or(0.0) / 1000.0);
}

/// Heat and clocks around a measurement.
struct Circumstances {
  std::vector<ThermalZone> before, after;
  std::vector<CoreInfo> cores;
  std::vector<int> mhz;  // of each core, just after the runs
};

void write_zones(JsonWriter& json, const char* name, const std::vector<ThermalZone>& zones) {
  json.key(name).begin_array();
  for (const ThermalZone& zone : zones)
    json.begin_object().text("zone", zone.name).real("celsius", zone.celsius).end_object();
  json.end_array();
}

void write_circumstances(JsonWriter& json, const Circumstances& found) {
  json.key("thermal").begin_object();
  write_zones(json, "before", found.before);
  write_zones(json, "after", found.after);
  json.end_object();
  json.key("cores").begin_array();
  for (size_t i = 0; i < found.cores.size(); ++i) {
    const CoreInfo& core = found.cores[i];
    json.begin_object().whole("core", core.index).whole("max_mhz", core.max_mhz);
    json.whole("capacity", core.capacity).flag("is_big", core.is_big).whole("mhz", found.mhz[i]).end_object();
  }
  json.end_array();
}

void print_circumstances(const Circumstances& found) {
  std::string heat;
  for (size_t i = 0; i < found.before.size() && i < found.after.size(); ++i)
    heat += format_text("%s%s %.1f -> %.1f C", i > 0 ? ", " : "", found.before[i].name.c_str(),
                        found.before[i].celsius, found.after[i].celsius);
  if (!heat.empty()) std::printf("heat: %s\n", heat.c_str());
  std::string clocks;
  for (size_t i = 0; i < found.cores.size(); ++i)
    if (found.mhz[i] > 0)
      clocks += format_text(" %d:%d/%d", found.cores[i].index, found.mhz[i], found.cores[i].max_mhz);
  if (!clocks.empty()) std::printf("clocks (processor:MHz/largest):%s\n", clocks.c_str());
}

void write_memory(JsonWriter& json, const MemoryInfo& memory) {
  json.key("memory").begin_object();
  json.whole("arena_bytes", static_cast<int64_t>(memory.arena_bytes));
  json.whole("lower_bound_bytes", static_cast<int64_t>(memory.lower_bound_bytes));
  json.whole("scratch_bytes", static_cast<int64_t>(memory.scratch_bytes));
  json.whole("weight_bytes", static_cast<int64_t>(memory.weight_bytes));
  json.whole("file_bytes", static_cast<int64_t>(memory.file_bytes));
  json.end_object();
}

void write_startup(JsonWriter& json, const StartupInfo& startup, const Measurement& measured) {
  json.key("startup").begin_object();
  json.real("load_ms", measured.load_ms).real("first_ms", measured.first_ms);
  json.whole("programs_built", startup.programs_built).whole("programs_loaded", startup.programs_loaded);
  json.whole("cache_entries_rejected", startup.cache_entries_rejected);
  json.whole("self_tests_run", startup.self_tests_run).real("build_ms", startup.build_ms);
  json.flag("uses_command_buffer", startup.uses_command_buffer);
  json.end_object();
}

/// An empty object on one processor.
void write_coexec(JsonWriter& json, const Network& network) {
  json.key("coexec").begin_object();
  if (const Result<CoexecInfo> info = network.coexec()) {
    json.flag("is_on_cpu_alone", info.value().is_on_cpu_alone);
    json.flag("is_on_gpu_alone", info.value().is_on_gpu_alone).flag("is_on_trial", info.value().is_on_trial);
    json.real("plan_ms", info.value().plan_ms).real("cpu_ms", info.value().cpu_ms);
    json.real("gpu_ms", info.value().gpu_ms);
  }
  json.end_object();
}

void print_selection(const CoexecInfo& info) {
  std::string found;
  for (const auto& [name, ms] : {std::pair{"the plan", info.plan_ms}, std::pair{"the CPU alone", info.cpu_ms},
                                 std::pair{"the GPU alone", info.gpu_ms}})
    if (ms > 0.0) found += format_text("%s%s %.3f ms", found.empty() ? "" : ", ", name, ms);
  if (found.empty()) return;
  const char* const runner = info.is_on_cpu_alone   ? "the CPU alone"
                             : info.is_on_gpu_alone ? "the GPU alone"
                                                    : "the plan";
  std::printf("auto-selection: %s; measured: %s\n", found.c_str(), runner);
}

/// Everything that was found.
struct BenchResult {
  Measurement measured;
  Circumstances circumstances;
  std::vector<double> profile;  // empty: not asked for
  std::optional<EnergyOutcome> energy;
};

void check_usage(const Arguments& arguments) {
  arguments.refuse_with("FILE", {"--again", "--resume"});
  if (!arguments.has("--energy"))
    arguments.refuse_with("FILE and no --energy", {"--energy-source", "--energy-seconds", "--no-idle"});
}

/// What was asked for.
struct BenchSettings {
  int batch, warmup, runs;
  double cooldown_s;
  std::optional<EnergySettings> energy;
};

BenchSettings bench_settings(const Arguments& arguments) {
  BenchSettings settings{};
  settings.batch = arguments.number("--batch", 1, 1, max_batch);
  settings.warmup = arguments.number("--warmup", 10, 0, max_runs);
  settings.runs = arguments.number("--runs", 100, 1, max_runs);
  settings.cooldown_s = arguments.real("--cooldown-s", 0.0, 0.0, 3600.0);
  if (arguments.has("--energy")) settings.energy = energy_settings(arguments);
  return settings;
}

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// The runs, with heat and clocks around them, after the first inference and a rest.
void run_inferences(const BenchSettings& settings, Loaded& loaded, BenchResult& result) {
  const double first = measure::now_ms();
  loaded.forward(result.measured.batch);
  result.measured.first_ms = measure::now_ms() - first;
  rest(settings.cooldown_s);
  Circumstances& around = result.circumstances;
  around.before = thermal_zones();
  around.cores = checked(cores());
  time_inferences(loaded, settings.runs, result.measured);
  for (const CoreInfo& core : around.cores) around.mhz.push_back(current_mhz(core.index));
  around.after = thermal_zones();
}

/// "neon" of "cpu:neon"; on a GPU the name that `phonebit bench` gives.
std::string isa_of(const std::string& device) {
  if (device.rfind("cpu:", 0) == 0) return device.substr(4);
  return device.rfind("vulkan", 0) == 0 ? "vulkan" : "opencl";
}

void print_json(const Arguments& arguments, const Network& network, const BenchResult& result) {
  const std::string device = network.device();
  JsonWriter json;
  json.begin_object();
  json.text("file", arguments.files()[0]).text("device", device).text("isa", isa_of(device));
  json.text("precision", precision_names[arguments.choice("--precision", precision_names)]);
  json.whole("threads", network.threads()).text("input", "random");
  write_measurement(json, result.measured);
  write_memory(json, network.memory());
  write_startup(json, network.startup(), result.measured);
  write_coexec(json, network);
  write_circumstances(json, result.circumstances);
  if (result.energy) write_energy(json, *result.energy);
  if (!result.profile.empty()) write_profile(json, network.layers(), result.profile, result.measured.batch);
  json.end_object();
  std::printf("%s\n", json.document().c_str());
}

void print_text(const Arguments& arguments, const Network& network, const BenchResult& result) {
  const Measurement& measured = result.measured;
  std::printf("%s  %s, %d threads, batch %d, %zu runs after %d\n", printable(arguments.files()[0]).c_str(),
              network.device().c_str(), network.threads(), measured.batch, measured.runs.run_ms.size(),
              measured.warmup);
  print_measurement(measured);
  print_selection(coexec_of(network));
  print_circumstances(result.circumstances);
  if (result.energy) print_energy(*result.energy);
  if (!result.profile.empty()) print_profile(network.layers(), result.profile, measured.batch);
}

}  // namespace

int bench(const Arguments& arguments) {
  check_usage(arguments);
  const BenchSettings settings = bench_settings(arguments);
  const int batch = settings.batch;
  BenchResult result{};
  result.measured.batch = batch;
  result.measured.warmup = settings.warmup;
  const double start = measure::now_ms();
  Loaded loaded = load(arguments, batch);
  result.measured.load_ms = measure::now_ms() - start;
  run_inferences(settings, loaded, result);
  if (arguments.has("--profile"))
    result.profile = checked(
        loaded.network.profile(as_inputs(loaded.inputs), batch, std::min(settings.runs, max_profiled_runs)));
  if (settings.energy)
    result.energy =
        measure_energy(*settings.energy, loaded.network.device(), batch, [&] { loaded.forward(batch); });
  print_warnings("phonebit_bench", loaded.network);
  arguments.has("--json") ? print_json(arguments, loaded.network, result)
                          : print_text(arguments, loaded.network, result);
  return exit_ok;
}

}  // namespace phonebit::tools
