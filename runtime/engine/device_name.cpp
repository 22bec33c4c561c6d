#include "engine/device_name.h"

#include <cstdlib>

#include "engine/devices.h"
#include "select.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

constexpr const char* kDeviceForms =
    "'auto', 'cpu', 'cpu:<instruction set>', 'gpu', 'gpu:<index>', 'vulkan', 'vulkan:<index>', or one of the "
    "last "
    "four followed by '+cpu' or '+cpu:<instruction set>'";

std::string isa_names() {
  std::string names;
  for (const IsaInfo& isa : instruction_sets()) {
    if (!names.empty()) names += ", ";
    names += isa.name;
    if (!isa.supported) names += " (not on this machine)";
  }
  return names;
}

}  // namespace

void fail_unknown_device(const std::string& device) {
  fail(ErrorCode::input, "device '%s' is unknown; expected %s", device.c_str(), kDeviceForms);
}

DeviceName parse_device(const std::string& device) {
  const size_t plus = device.find('+');
  const bool is_pair = plus != std::string::npos;
  const std::string first = device.substr(0, plus), last = is_pair ? device.substr(plus + 1) : first;
  const std::string kind = first.substr(0, first.find(':'));
  const bool is_gpu = kind == "gpu" || kind == "vulkan";
  if (!is_pair && (is_gpu || first == "auto")) return {first, false, ""};
  const std::string isa = last.rfind("cpu:", 0) == 0 ? last.substr(4) : "";
  if ((is_pair && !is_gpu) || (last != "cpu" && isa.empty())) fail_unknown_device(device);
  return {is_pair ? first : "", true, isa};
}

const cpu::Isa& choose_isa(const std::string& name) {
  const char* variable = std::getenv("PHONEBIT_CPU");
  const bool is_from_variable = name.empty() && variable != nullptr;
  const std::string wanted = is_from_variable ? variable : name;
  const cpu::Isa* isa = cpu::select_isa(wanted.empty() ? nullptr : wanted.c_str());
  if (isa == nullptr)
    fail(ErrorCode::device,
         "%sinstruction set '%s' is unknown or not supported by this machine; choose one of: %s",
         is_from_variable ? "PHONEBIT_CPU: " : "", wanted.c_str(), isa_names().c_str());
  return *isa;
}

std::vector<IsaInfo> instruction_sets() {
  std::vector<IsaInfo> result;
  for (const cpu::Isa* const* isa = cpu::kBuiltIsas; *isa != nullptr; ++isa)
    result.push_back({(*isa)->name, (*isa)->features, (*isa)->supported()});
  return result;
}

}  // namespace phonebit::engine
