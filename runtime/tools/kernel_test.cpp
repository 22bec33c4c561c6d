// --self-test: compares every kernel variant of an OpenCL device with the CPU backend.
#include <algorithm>
#include <cstdio>

#include "engine.h"
#include "modes.h"

namespace phonebit::tools {
namespace {

void print_json(const std::string& device, const std::vector<SelfTestResult>& results, int64_t failed) {
  JsonWriter json;
  json.begin_object().text("device", device).whole("failed", failed);
  json.key("tests").begin_array();
  for (const SelfTestResult& result : results) {
    json.begin_object().text("op", result.op).text("choice", result.kernel);
    json.flag("passed", result.is_passed).text("detail", result.detail).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.document().c_str());
}

}  // namespace

int self_test(const Arguments& arguments) {
  if (!arguments.files().empty()) fail("--self-test takes no FILE");
  const std::string device = arguments.text("--device").value_or("gpu");
  const std::vector<SelfTestResult> results =
      checked(phonebit::self_test(engine_options(arguments).device(device), arguments.has("--again")));
  const auto failed = std::count_if(results.begin(), results.end(),
                                    [](const SelfTestResult& result) { return !result.is_passed; });
  if (arguments.has("--json")) {
    print_json(device, results, failed);
  } else {
    for (const SelfTestResult& result : results)
      if (!result.is_passed)
        std::printf("failed: %s with %s: %s\n", result.op.c_str(), result.kernel.c_str(),
                    result.detail.c_str());
    std::printf("%s: %zu kernel variants tested, %lld failed%s\n", device.c_str(), results.size(),
                static_cast<long long>(failed), failed > 0 ? "; those are not used" : "");
  }
  return failed > 0 ? exit_mismatch : exit_ok;
}

}  // namespace phonebit::tools
