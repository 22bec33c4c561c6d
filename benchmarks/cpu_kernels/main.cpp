// bench_cpu_kernels: every binary convolution kernel of every supported instruction set on one thread.
//
//   --isa NAME      only this instruction set
//   --kernel TEXT   only kernels whose name contains TEXT
//   --layer TEXT    only layers whose name contains TEXT
//   --json FILE     also write the results as JSON;  --commit HASH goes into it
//
// All kernels must give one output; tests compare it with a plain loop. Times include prepare_input. Cycles
// are counted by a clock measured together with each kernel, and shares are of bounds measured in the same run
// (machine.h): dense layers move weights, so theirs is the read bandwidth.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernel_types.h"
#include "layers.h"
#include "machine.h"
#include "select.h"

namespace {

using namespace phonebit::engine::cpu;
using bench::aligned;
using bench::Aligned;
using bench::Layer;

struct Options {
  std::string isa, kernel, layer, json, commit;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    std::string* const text = name == "--isa"      ? &options.isa
                              : name == "--kernel" ? &options.kernel
                              : name == "--layer"  ? &options.layer
                              : name == "--json"   ? &options.json
                              : name == "--commit" ? &options.commit
                                                   : nullptr;
    if (i + 1 >= argc || text == nullptr) {
      std::fprintf(stderr, "%s: unknown option or missing value; the options are at the top of main.cpp\n",
                   name.c_str());
      std::exit(2);
    }
    *text = argv[++i];
  }
  return options;
}

struct Result {
  std::string layer, isa, kernel, bound_name;
  bench::Timing timing;
  double tops, macs_per_cycle, share, ghz;
  bool correct;
};

/// Read bandwidths by buffer size, measured once each.
double read_bandwidth(size_t bytes) {
  static std::vector<std::pair<size_t, double>> known;
  for (const auto& entry : known) {
    if (entry.first == bytes) return entry.second;
  }
  known.emplace_back(bytes, bench::measure_read_bandwidth(bytes));
  return known.back().second;
}

/// Times a kernel, and compares its output with the first kernel's, which `expected` keeps.
Result measure(const Layer& layer, const bench::Problem& problem, const Isa& isa,
               const BinaryConvKernel& kernel, const bench::Bounds& bounds, std::vector<uint32_t>& expected) {
  const ConvShape& s = layer.shape;
  const Aligned packed = aligned(kernel.packed_bytes(s)), scratch = aligned(kernel.scratch_bytes(s));
  kernel.pack_weights(s, problem.weights.data(), problem.thresholds.data(), packed.get());
  std::vector<uint32_t> output((size_t)s.out_h * s.out_w * words(s.out_c));
  const OutputRange all = {0, s.out_h * s.out_w, 0, (s.out_c + kChannelBlock - 1) / kChannelBlock};
  const AccumulatorSink sink = {output.data(), words(s.out_c), nullptr};
  const auto call = [&] {
    const int rows = kernel.prepare_rows(s);
    if (rows > 0) kernel.prepare_input(s, problem.input.data(), scratch.get(), 0, rows);
    kernel.run(s, packed.get(), problem.input.data(), scratch.get(), all, sink);
  };
  call();
  if (expected.empty()) expected = output;

  Result result;
  result.layer = layer.name, result.isa = isa.name, result.kernel = kernel.name;
  result.correct = output == expected;
  result.ghz = bench::measure_clock();
  result.timing = bench::time_calls(call);
  result.ghz = (result.ghz + bench::measure_clock()) / 2;
  const double macs_per_second = layer.macs() / result.timing.median_s;
  result.tops = 2 * macs_per_second / 1e12;
  result.macs_per_cycle = macs_per_second / (result.ghz * 1e9);
  if (layer.dense()) {
    const double weight_bytes = layer.macs() / 8;
    result.bound_name = "read bandwidth";
    result.share = weight_bytes / result.timing.median_s / read_bandwidth((size_t)weight_bytes);
  } else {
    const double bound = result.isa == "avx512" ? bounds.popcount : 0;
    result.bound_name = bound == 0 ? "" : "P_issue";
    result.share = bound == 0 ? 0 : result.macs_per_cycle / bound;
  }
  return result;
}

void print(const Result& r) {
  std::printf("%-26s %-7s %-34s %9.2f %8.3f %9.1f", r.layer.c_str(), r.isa.c_str(), r.kernel.c_str(),
              r.timing.median_s * 1e6, r.tops, r.macs_per_cycle);
  if (!r.bound_name.empty()) std::printf("  %4.0f %% of %s", r.share * 100, r.bound_name.c_str());
  std::printf("%s\n", r.correct ? "" : "  WRONG");
  std::fflush(stdout);
}

bool write_json(const Options& options, const bench::Bounds& bounds, double ghz,
                const std::vector<Result>& results) {
  std::FILE* file = std::fopen(options.json.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\n  \"device\": \"%s\",\n  \"driver\": \"none\",\n  \"threads\": 1,\n  \"commit\": \"%s\",\n"
               "  \"warm_up_calls\": 3,\n  \"clock_ghz\": %.3f,\n"
               "  \"bounds_mac_per_cycle\": {\"popcount\": %.1f, \"carry_save\": %.1f},\n"
               "  \"results\": [",
               bench::processor_name().c_str(), options.commit.c_str(), ghz, bounds.popcount,
               bounds.carry_save);
  const char* separator = "";
  for (const Result& r : results) {
    std::fprintf(
        file,
        "%s\n    {\"layer\": \"%s\", \"isa\": \"%s\", \"kernel\": \"%s\", \"correct\": %s, "
        "\"latency_us\": %.3f, \"quartiles_us\": [%.3f, %.3f], \"samples\": %d, \"calls_per_sample\": %d, "
        "\"tops\": %.4f, \"mac_per_cycle\": %.2f, \"clock_ghz\": %.3f, \"bound\": \"%s\", "
        "\"share_of_bound\": %.4f}",
        separator, r.layer.c_str(), r.isa.c_str(), r.kernel.c_str(), r.correct ? "true" : "false",
        r.timing.median_s * 1e6, r.timing.low_s * 1e6, r.timing.high_s * 1e6, r.timing.samples,
        r.timing.calls_per_sample, r.tops, r.macs_per_cycle, r.ghz, r.bound_name.c_str(), r.share);
    separator = ",";
  }
  std::fprintf(file, "\n  ]\n}\n");
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const double ghz = bench::measure_clock();
  const bench::Bounds bounds = bench::measure_bounds();
  std::printf("%s, one thread\n", bench::processor_name().c_str());
  std::printf("clock %.2f GHz\nissue bounds measured here, MAC/cycle: popcount %.0f (P_issue), ", ghz,
              bounds.popcount);
  std::printf("carry-save %.0f\n\n", bounds.carry_save);
  std::printf("%-26s %-7s %-34s %9s %8s %9s\n", "layer", "isa", "kernel", "us", "TOPS", "MAC/cycle");

  std::vector<Result> results;
  for (const Layer& layer : bench::layers()) {
    if (layer.name.find(options.layer) == std::string::npos) continue;
    const bench::Problem problem(layer);
    std::vector<uint32_t> expected;
    for (const Isa* const* isa = kBuiltIsas; *isa != nullptr; ++isa) {
      if (!(*isa)->supported() || (!options.isa.empty() && options.isa != (*isa)->name)) continue;
      for (const BinaryConvRow* row = (*isa)->binary_conv; row->name != nullptr; ++row) {
        if (!can_compute(*row, layer.shape, this_processor(1))) continue;
        if (std::string(row->code->name).find(options.kernel) == std::string::npos) continue;
        results.push_back(measure(layer, problem, **isa, *row->code, bounds, expected));
        print(results.back());
      }
    }
  }
  if (!options.json.empty() && !write_json(options, bounds, ghz, results)) {
    std::fprintf(stderr, "%s: cannot be written\n", options.json.c_str());
    return 1;
  }
  for (const Result& result : results) {
    if (!result.correct) return 1;
  }
  return 0;
}
