// phonebit_bench: how fast a network is on this device, for adb shell. docs/android.md shows it at work.
#include <cstdio>
#include <exception>

#include "engine.h"
#include "modes.h"
#include "printable.h"

namespace phonebit::tools {
namespace {

constexpr const char* usage =
    "Measures networks on this device.\n\n"
    "  phonebit_bench FILE [options]       latency, throughput, energy on random inputs\n"
    "  phonebit_bench --devices [--json]   devices and energy sources\n"
    "  phonebit_bench --self-test [--json] compares every GPU kernel with the CPU\n"
    "  phonebit_bench --collect FOLDER     runs the job of `phonebit collect --orders FOLDER`\n\n"
    "Exit code 0: done; 1: a kernel failed the self-test; 2: wrong usage or failure.\n\n";

const std::vector<OptionRule> own_rules = {
    {"--runs", "N", "number of measured runs (default 100)"},
    {"--warmup", "N", "warm-up runs (default 10)"},
    {"--batch", "N", "batch size (default 1)"},
    {"--profile", nullptr, "time per layer"},
    {"--cooldown-s", "S", "seconds to wait before measuring (default 0)"},
    {"--energy", nullptr, "also measure energy: mW, mJ/frame, FPS/W"},
    {"--energy-source", "NAME", "a source listed by --devices (default: the one for the device)"},
    {"--energy-seconds", "S", "minimum measuring time of energy (default 3)"},
    {"--no-idle", nullptr, "do not measure idle power"},
    {"--json", nullptr, "print one JSON document"},
    {"--devices", nullptr, "list devices and energy sources"},
    {"--self-test", nullptr, "test kernels"},
    {"--again", nullptr, "repeat tests that have a stored result"},
    {"--collect", "FOLDER", "run a measurement job; results go to FOLDER/results.jsonl"},
    {"--resume", nullptr, "continue with existing results"},
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
    std::fprintf(stderr, "phonebit_bench: %s\n", phonebit::tools::printable_lines(error.what()).c_str());
    return phonebit::tools::exit_failed;
  }
}
