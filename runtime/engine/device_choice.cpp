#include "engine/device_choice.h"

#include <charconv>
#include <cstdlib>

#include "engine/devices.h"
#include "opencl/context.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

constexpr const char* kDeviceForms =
    "'auto', 'cpu', 'cpu:<instruction set>', 'gpu', 'gpu:<index>', or one of the last two followed by '+cpu' "
    "or '+cpu:<instruction set>'";

[[noreturn]] void fail_unknown(const std::string& device) {
  fail(ErrorCode::input, "device '%s' is unknown; expected %s", device.c_str(), kDeviceForms);
}

std::string isa_names() {
  std::string names;
  for (const IsaInfo& isa : instruction_sets()) {
    if (!names.empty()) names += ", ";
    names += isa.name;
    if (!isa.supported) names += " (not on this machine)";
  }
  return names;
}

std::string device_list() {
  std::string list;
  const auto& devices = opencl::devices();
  for (size_t i = 0; i < devices.size(); ++i)
    list += format_text("%sgpu:%zu %s", i > 0 ? ", " : "", i, devices[i].name.c_str());
  return list.empty() ? "none" : list;
}

/// Index of the device that "auto", "gpu" or "gpu:..." means, or -1 for the CPU.
int gpu_index(const std::string& device) {
  const auto& devices = opencl::devices();
  if (device == "auto") return !devices.empty() && devices[0].is_gpu ? 0 : -1;
  unsigned index = 0;
  if (device != "gpu") {
    const char* const end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + 4, end, index);
    if (error != std::errc() || stop != end) fail_unknown(device);
  }
  if (devices.empty()) fail(ErrorCode::device, "device '%s': %s", device.c_str(), gpu_error().c_str());
  if (index >= devices.size())
    fail(ErrorCode::device, "device '%s': there is no such device; there are: %s", device.c_str(),
         device_list().c_str());
  return static_cast<int>(index);
}

}  // namespace

DeviceName parse_device(const std::string& device) {
  const size_t plus = device.find('+');
  const bool is_pair = plus != std::string::npos;
  const std::string first = device.substr(0, plus), last = is_pair ? device.substr(plus + 1) : first;
  const bool is_gpu = first == "gpu" || first.rfind("gpu:", 0) == 0;
  if (!is_pair && (is_gpu || first == "auto")) return {first, false, ""};
  const std::string isa = last.rfind("cpu:", 0) == 0 ? last.substr(4) : "";
  if ((is_pair && !is_gpu) || (last != "cpu" && isa.empty())) fail_unknown(device);
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

std::shared_ptr<gpu::Device> open_device(const Options& options, const std::string& device,
                                         std::string* label) {
  if (options.handles.context != nullptr) {
    const auto borrowed = opencl::Context::borrow(options.handles);
    *label = "gpu " + borrowed->facts().name;
    return borrowed;
  }
  const int index = device.empty() ? -1 : gpu_index(device);
  if (index < 0) return nullptr;
  const opencl::ClDevice& found = opencl::devices()[static_cast<size_t>(index)];
  *label = format_text("gpu:%d %s", index, found.name.c_str());
  return opencl::Context::create(found, options.hint);
}

}  // namespace phonebit::engine
