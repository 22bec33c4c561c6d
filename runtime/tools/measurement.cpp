#include "measurement.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "printable.h"

namespace phonebit::tools {
namespace {

using measure::quantile;

/// Operations a nanosecond; a multiply-accumulate is two.
double gops(double macs, double latency_ms) {
  return latency_ms > 0.0 ? 2.0 * macs / (latency_ms * 1e6) : 0.0;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double share(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

}  // namespace

void write_measurement(JsonWriter& json, const Measurement& measurement) {
  const double median = quantile(measurement.runs.run_ms, 0.5);
  json.whole("warmup", measurement.warmup);
  json.whole("batch", measurement.batch);
  json.whole("runs", static_cast<int64_t>(measurement.runs.run_ms.size()));
  json.real("median_ms", median);
  json.real("min_ms", quantile(measurement.runs.run_ms, 0.0));
  json.real("p90_ms", quantile(measurement.runs.run_ms, 0.9));
  json.real("fps", 1e3 * measurement.batch / median);
  json.key("canary").begin_object();
  json.real("median_ms", quantile(measurement.runs.loop_ms, 0.5));
  json.real("p90_over_min", measurement.runs.noise());
  json.flag("disturbed", measurement.runs.is_disturbed());
  json.end_object();
}

void print_measurement(const Measurement& measurement) {
  const std::vector<double>& times = measurement.runs.run_ms;
  const double median = quantile(times, 0.5);
  std::printf("median %.3f ms   min %.3f ms   p90 %.3f ms   %.0f FPS\n", median, quantile(times, 0.0),
              quantile(times, 0.9), 1e3 * measurement.batch / median);
  if (measurement.runs.is_disturbed())
    std::printf(
        "noise probe: the machine was disturbed (a fixed loop's p90 was %.2f x its minimum): trust min and "
        "ratios only\n",
        measurement.runs.noise());
  std::printf("start: loaded in %.1f ms, first pass %.1f ms\n", measurement.load_ms, measurement.first_ms);
}

void write_profile(JsonWriter& json, const std::vector<LayerInfo>& layers,
                   const std::vector<double>& latencies_ms, int batch) {
  const double total_ms = sum(latencies_ms);
  json.key("layers").begin_array();
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerInfo& layer = layers[i];
    const int64_t macs = layer.macs * batch;
    json.begin_object();
    json.text("name", layer.name).text("kind", layer.kind).text("kernel", layer.kernel);
    json.flag("binary", layer.is_binary);
    json.real("latency_ms", latencies_ms[i]);
    json.whole("macs", macs);
    json.whole("weight_bytes", static_cast<int64_t>(layer.weight_bytes));
    json.real("gops", gops(static_cast<double>(macs), latencies_ms[i]));
    json.real("share", share(latencies_ms[i], total_ms));
    json.end_object();
  }
  json.end_array();
}

void print_profile(const std::vector<LayerInfo>& layers, const std::vector<double>& latencies_ms, int batch) {
  const double total_ms = sum(latencies_ms);
  std::printf("%10s %7s %8s  %-24s %-32s %s\n", "ms", "share", "GOPS", "kind", "layer", "kernel");
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerInfo& layer = layers[i];
    std::printf("%10.4f %5.1f %% %8.1f  %-24s %-32s %s\n", latencies_ms[i],
                100.0 * share(latencies_ms[i], total_ms),
                gops(static_cast<double>(layer.macs) * batch, latencies_ms[i]), layer.kind.c_str(),
                printable(layer.name).c_str(), layer.kernel.c_str());
  }
}

}  // namespace phonebit::tools
