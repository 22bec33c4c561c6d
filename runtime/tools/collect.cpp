// --collect: carries out a measurement job, layer by layer. What the numbers mean is decided where the orders were
// written (phonebit/planner/measure/collect.py): here they are only measured.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "engine.h"
#include "modes.h"
#include "orders.h"

namespace phonebit::tools {
namespace {

/// The order of a line that this program wrote; -1 for one that failed, which is tried again.
int measured_order(const std::string& where, const std::string& line) {
  int order = -1, after = 0;
  if (std::sscanf(line.c_str(), "{\"order\": %d, %n", &order, &after) != 1 || after == 0)
    fail("%s: not a line of results; give --collect a new folder", where.c_str());
  return line.compare(static_cast<size_t>(after), 9, "\"failed\":") == 0 ? -1 : order;
}

/// results.jsonl: what a collection has measured, one JSON object per line after one that says whose they are.
/// Lines are only appended, so an interrupted collection loses at most its last line.
class ResultsFile {
 public:
  /// Begins a file, or with `resume` goes on with one that is there: its first line must be `head`, and a
  /// last line that was cut off is taken away. Throws Failure if the file is another device's or may not be
  /// touched.
  ResultsFile(std::string path, const std::string& head, bool resume) : path_(std::move(path)) {
    if (exists(path_) && !resume)
      fail("%s: the file is there already; add --resume to go on with it", path_.c_str());
    if (exists(path_)) go_on(head);
    if (!exists(path_)) append(head);
  }

  /// Whether an order was measured before.
  bool has(int order) const { return measured_.count(order) != 0; }

  /// Adds a line. Throws Failure if it cannot be written.
  void append(const std::string& line) {
    std::FILE* file = std::fopen(path_.c_str(), "ab");
    const bool is_written = file != nullptr && std::fprintf(file, "%s\n", line.c_str()) >= 0;
    const bool is_closed = file != nullptr && std::fclose(file) == 0;  // a full disk may show only now
    if (!is_written || !is_closed) fail("%s: %s", path_.c_str(), std::strerror(errno));
  }

 private:
  void go_on(const std::string& head) {
    std::string text = read_text(path_);
    const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole == 0) {  // not even the first line was finished
      if (std::remove(path_.c_str()) != 0) fail("%s: %s", path_.c_str(), std::strerror(errno));
      return;
    }
    if (whole < text.size()) {
      text.resize(whole);
      write_bytes(path_, text.data(), text.size());
    }
    size_t begin = 0;
    for (int number = 1; begin < text.size(); ++number) {
      const size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      if (number == 1 && line != head)
        fail("%s: results of other orders, another device or other settings; give --collect a new folder",
             path_.c_str());
      if (number > 1) measured_.insert(measured_order(path_ + ":" + std::to_string(number), line));
    }
  }

  std::string path_;
  std::set<int> measured_;
};

/// Both processors of "gpu:1+cpu:neon".
struct Processors {
  std::string gpu, cpu;
};

Processors processors(const Arguments& arguments) {
  const std::string device = arguments.text("--device").value_or("gpu+cpu");
  const size_t plus = device.find('+');
  if (plus == std::string::npos)
    fail("--device: got '%s', expected two processors for --collect, as gpu+cpu", device.c_str());
  return {device.substr(0, plus), device.substr(plus + 1)};
}

template <class Value>
Value named(const std::map<std::string, Value>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) fail("orders.txt: unknown way of sharing '%s'", name.c_str());
  return found->second;
}

Options with_way(Options options, const Way& way) {
  static const std::map<std::string, Sharing> sharings = {
      {"svm", Sharing::svm}, {"map", Sharing::map}, {"copy", Sharing::copy}};
  static const std::map<std::string, Synchronization> synchronizations = {
      {"polling", Synchronization::polling},
      {"events", Synchronization::events},
      {"user_events", Synchronization::user_events}};
  return options.sharing(named(sharings, way.sharing))
      .synchronization(named(synchronizations, way.synchronization));
}

struct TurnTimes {
  LayerTimes probe;
  std::vector<LayerTimes> pairs;
};

struct Probe {
  Network network;
  engine::measure::NoiseProbe rule;
};

LayerTimes measure_pair(Network& network, int layer, const PartPair& pair, int repeats) {
  return checked(network.measure_layer(layer, pair.cpu ? &*pair.cpu : nullptr,
                                       pair.gpu ? &*pair.gpu : nullptr, repeats));
}

void keep_minimum(LayerTimes& minimum, const LayerTimes& other) {
  minimum.total_us = std::min(minimum.total_us, other.total_us);
  minimum.cpu_us = std::min(minimum.cpu_us, other.cpu_us);
  minimum.gpu_us = std::min(minimum.gpu_us, other.gpu_us);
}

/// Measures orders of one folder with fixed settings.
class Collector {
 public:
  Collector(const Arguments& arguments, std::string folder)
      : folder_(std::move(folder)),
        list_(read_orders(folder_)),
        processors_(processors(arguments)),
        settings_(engine_options(arguments)),
        cores_(arguments.text("--cores").value_or("any")),
        hint_(arguments.text("--hint").value_or("none")) {
    find_ways();
  }

  const OrderList& list() const { return list_; }

  /// Whether the device can do what the order asks for.
  bool can(const Order& order) const {
    return !order.way || std::find(ways_.begin(), ways_.end(), *order.way) != ways_.end();
  }

  /// The first line of results: whose they are.
  std::string head() const;
  /// The line of an order, measured now. A device that fails is a line, too.
  std::string measure(const Order& order);

 private:
  void find_ways();
  Network load(const std::string& file, int threads, const Way& way) const;
  /// The minimum times of an order's pairs, and those of the noise probe meanwhile.
  TurnTimes measure_in_turns(Network& network, const Order& order);
  void write_gpu(JsonWriter& json) const;
  void write_cpu(JsonWriter& json) const;
  void write_keys(JsonWriter& json) const;

  std::string folder_;
  OrderList list_;
  Processors processors_;
  Options settings_;
  std::string cores_, hint_;
  std::vector<Way> ways_;        // that the device has
  std::map<int, Probe> probes_;  // by CPU threads
};

Network Collector::load(const std::string& file, int threads, const Way& way) const {
  Options options = with_way(settings_, way);
  // Layers are measured one by one, so any plan will do; these files have none.
  options.device(processors_.gpu + "+" + processors_.cpu).threads(threads);
  return checked(Network::load(folder_ + "/" + file, options));
}

void Collector::find_ways() {
  std::string refusal;
  for (const Way& way : list_.ways) {
    try {
      load(list_.sharing_file, list_.threads[0], way);
      ways_.push_back(way);
    } catch (const EngineFailure& failure) {
      if (failure.status != Status::device) throw;
      refusal = failure.what();
    }
  }
  if (ways_.empty()) fail("the processors cannot work together: %s", refusal.c_str());
}

std::string Collector::head() const {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object().text("orders", list_.identity).text("version", version());
  json.text("cores", cores_).text("hint", hint_);
  write_gpu(json);
  write_cpu(json);
  write_keys(json);
  json.key("ways").begin_array();
  for (const Way& way : ways_) json.begin_array().text(way.sharing).text(way.synchronization).end_array();
  json.end_array().end_object();
  return json.document();
}

void Collector::write_gpu(JsonWriter& json) const {
  const std::string name = processors_.gpu + (processors_.gpu.find(':') == std::string::npos ? ":0" : "");
  for (const DeviceInfo& device : checked(devices())) {
    if (device.name != name) continue;
    json.key("gpu").begin_object().text("name", device.description).text("vendor", device.vendor);
    json.text("family", device.family).text("driver", device.driver);
    json.whole("compute_units", device.compute_units).whole("clock_mhz", device.clock_mhz);
    json.whole("local_bytes", static_cast<int64_t>(device.local_bytes));
    const std::string capabilities = " " + device.capabilities + " ";
    json.flag("has_images", capabilities.find(" images ") != std::string::npos).end_object();
    return;
  }
  fail("--device: there is no '%s'; --devices lists what there is", name.c_str());
}

void Collector::write_cpu(JsonWriter& json) const {
  Options alone = settings_;
  alone.device(processors_.cpu).threads(1);
  const Network network = checked(Network::load(folder_ + "/" + list_.probe_file, alone));
  const std::vector<LayerInfo> layers = network.layers();
  const auto probe = static_cast<size_t>(list_.probe_layer);
  if (probe >= layers.size()) fail("%s has no layer %zu", list_.probe_file.c_str(), probe);
  const std::string device = network.device();  // "cpu:neon"
  for (const DeviceInfo& info : checked(devices())) {
    if (info.name != device) continue;
    json.key("cpu").begin_object().text("isa", device.substr(4)).whole("cores", info.compute_units);
    json.text("probe_kernel", layers[probe].kernel).end_object();
    return;
  }
  fail("the CPU calls itself '%s', which is none of --devices", device.c_str());
}

void Collector::write_keys(JsonWriter& json) const {
  json.key("keys").begin_object();
  for (int threads : list_.threads)
    json.text(std::to_string(threads), load(list_.probe_file, threads, ways_[0]).plan_key());
  json.end_object();
}

void write_times(JsonWriter& json, const TurnTimes& times) {
  json.key("times_us").begin_array();
  for (const LayerTimes& us : times.pairs)
    json.begin_array().real(us.total_us).real(us.cpu_us).real(us.gpu_us).end_array();
  json.end_array();
  json.key("canary_us").begin_array().real(times.probe.cpu_us).real(times.probe.gpu_us).end_array();
}

void write_sizes(JsonWriter& json, const char* name, const uint64_t (&sizes)[3]) {
  json.key(name).begin_array();
  for (uint64_t size : sizes) json.whole(static_cast<int64_t>(size));
  json.end_array();
}

void write_launches(JsonWriter& json, Network& network, const Order& order, const PartPair& pair) {
  json.begin_array();
  if (pair.gpu) {
    for (const DispatchInfo& launch : checked(network.dispatch(order.layer, *pair.gpu))) {
      json.begin_object().text("kernel", launch.kernel).text("choice", launch.choice);
      write_sizes(json, "global", launch.global);
      write_sizes(json, "local", launch.local);
      json.end_object();
    }
  }
  json.end_array();
}

TurnTimes Collector::measure_in_turns(Network& network, const Order& order) {
  const ProbeOrder& probe_order = list_.noise_probe;
  auto probe = probes_.find(order.threads);
  if (probe == probes_.end())
    probe = probes_
                .emplace(order.threads, Probe{load(probe_order.file, order.threads, ways_[0]),
                                              engine::measure::NoiseProbe(probe_order.limits)})
                .first;
  constexpr double maximum = std::numeric_limits<double>::infinity();
  TurnTimes minimum{{maximum, maximum, maximum},
                    std::vector<LayerTimes>(order.pairs.size(), {maximum, maximum, maximum})};
  engine::measure::Sides sides{};
  for (const PartPair& pair : order.pairs) sides = {sides[0] || pair.cpu, sides[1] || pair.gpu};
  const auto turn = [&]() -> engine::measure::SideTimes {
    const LayerTimes times =
        measure_pair(probe->second.network, probe_order.layer, probe_order.parts, probe_order.repeats);
    keep_minimum(minimum.probe, times);
    for (size_t i = 0; i < order.pairs.size(); ++i)
      keep_minimum(minimum.pairs[i], measure_pair(network, order.layer, order.pairs[i], 1));
    return {times.cpu_us, times.gpu_us};
  };
  probe->second.rule.measure_in_turns(sides, turn, order.turns, 0.0);
  return minimum;
}

std::string Collector::measure(const Order& order) {
  JsonWriter json(JsonWriter::Layout::one_line);
  try {
    const Way way = order.way.value_or(ways_[0]);
    Network network = load(order.file, order.threads, way);
    json.begin_object().whole("order", order.number);
    json.key("way").begin_array().text(way.sharing).text(way.synchronization).end_array();
    write_times(json, measure_in_turns(network, order));
    json.key("launches").begin_array();
    for (const PartPair& pair : order.pairs) write_launches(json, network, order, pair);
    json.end_array().end_object();
    return json.document();
  } catch (const EngineFailure& failure) {
    if (failure.status != Status::device) throw;
    JsonWriter failed(JsonWriter::Layout::one_line);
    failed.begin_object().whole("order", order.number).text("failed", failure.what()).end_object();
    return failed.document();
  }
}

}  // namespace

int collect(const Arguments& arguments) {
  if (!arguments.files().empty()) fail("--collect takes no FILE");
  arguments.refuse_with(
      "--collect", {"--threads", "--precision", "--runs", "--warmup", "--batch", "--profile", "--energy",
                    "--energy-source", "--energy-seconds", "--no-idle", "--json", "--again", "--cooldown-s"});
  const std::string folder = *arguments.text("--collect");
  Collector collector(arguments, folder);
  ResultsFile results(folder + "/results.jsonl", collector.head(), arguments.has("--resume"));
  const size_t count = collector.list().orders.size();
  size_t measured = 0, known = 0;
  for (const Order& order : collector.list().orders) {
    if (!collector.can(order)) continue;
    if (results.has(order.number)) {
      ++known;
      continue;
    }
    std::fprintf(stderr, "order %d of %zu: %s, %d threads\n", order.number + 1, count, order.file.c_str(),
                 order.threads);
    results.append(collector.measure(order));
    ++measured;
  }
  std::printf("%zu orders measured, %zu known before: %s/results.jsonl\n", measured, known, folder.c_str());
  return exit_ok;
}

}  // namespace phonebit::tools
