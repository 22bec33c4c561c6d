// What a benchmark found.
#pragma once

#include <vector>

#include "engine.h"
#include "measure/statistics.h"

namespace phonebit::tools {

namespace measure = engine::measure;

/// Latencies of one network, and how steady the machine was meanwhile.
struct Measurement {
  int batch, warmup;
  double load_ms;   ///< from the file to a network that is ready
  double first_ms;  ///< the first inference: it reads the weights, and a GPU warms up
  measure::TimedRuns runs;
};

/// Names of JSON are those of `phonebit bench --json`.
void write_measurement(JsonWriter& json, const Measurement& measurement);
void print_measurement(const Measurement& measurement);

/// Times of layers, `latencies_ms` for a batch.
void write_profile(JsonWriter& json, const std::vector<LayerInfo>& layers,
                   const std::vector<double>& latencies_ms, int batch);
void print_profile(const std::vector<LayerInfo>& layers, const std::vector<double>& latencies_ms, int batch);

}  // namespace phonebit::tools
