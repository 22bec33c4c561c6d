// phonebit_bench: how fast a network is on this device, for adb shell. docs/android.md shows it at work.
#include <cstdio>
#include <exception>

#include "engine.h"
#include "modes.h"

namespace phonebit::tools {
namespace {

constexpr const char* usage =
    "Measures networks on this device.\n\n"
    "  phonebit_bench FILE [options]       latency, throughput, energy on random inputs\n"
    "  phonebit_bench --devices [--json]   processors, energy sources\n"
    "  phonebit_bench --self-test [--json] every GPU kernel against the CPU\n"
    "  phonebit_bench --collect FOLDER     measures the orders of `phonebit collect --orders FOLDER`\n\n"
    "Exit code 0: done; 1: a kernel failed the self-test; 2: wrong usage, or it could not be done.\n\n";

const std::vector<OptionRule> own_rules = {
    {"--runs", "N", "measured runs (default 100)"},
    {"--warmup", "N", "runs before those (default 10)"},
    {"--batch", "N", "inputs a run (default 1)"},
    {"--profile", nullptr, "each layer's time"},
    {"--cooldown-s", "S", "rest before the runs, in seconds (default 0)"},
    {"--energy", nullptr, "energy, too: mW, mJ/frame, FPS/W"},
    {"--energy-source", "NAME", "a source as --devices lists them (default: the one that fits)"},
    {"--energy-seconds", "S", "measure energy so long or longer (default 3)"},
    {"--no-idle", nullptr, "leave the power without work out"},
    {"--json", nullptr, "one JSON document instead of text"},
    {"--devices", nullptr, "list processors"},
    {"--self-test", nullptr, "test kernels"},
    {"--again", nullptr, "test even kernels that have a stored result"},
    {"--collect", "FOLDER", "measure a work order into FOLDER/results.jsonl"},
    {"--resume", nullptr, "go on with results that are there already"},
    {"--help", nullptr, "this text"},
};

int run(int argc, const char* const* argv) {
  const std::vector<OptionRule> rules = with_engine_rules(own_rules);
  const Arguments arguments(rules, argc, argv);
  if (arguments.has("--help")) {
    std::fputs(help_text(usage, rules).c_str(), stdout);
    return exit_ok;
  }
  if (arguments.has("--devices")) return list_devices(arguments);
  if (arguments.has("--self-test")) return self_test(arguments);
  if (arguments.has("--collect")) return collect(arguments);
  return bench(arguments);
}

}  // namespace
}  // namespace phonebit::tools

int main(int argc, char** argv) {
  try {
    return phonebit::tools::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "phonebit_bench: %s\n", error.what());
    return phonebit::tools::exit_failed;
  }
}
