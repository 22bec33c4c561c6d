// In place of make_backend.cpp, device_choice.cpp and devices.cpp in builds for the CPU alone (PHONEBIT_GPU=OFF).
#include "cpu/cpu_backend.h"
#include "engine/device_name.h"
#include "engine/devices.h"
#include "engine/make_backend.h"
#include "engine/thread_choice.h"
#include "types/fail.h"

namespace phonebit::engine {

void use_opencl_library(const std::string& path) {
  fail(ErrorCode::device, "%s: %s", path.c_str(), gpu_error().c_str());
}

std::vector<GpuInfo> gpu_devices(const std::string& /*api*/) { return {}; }

std::string gpu_error(const std::string& /*api*/) { return "this build of PhoneBit is for the CPU alone"; }

std::vector<SelfTestResult> gpu_self_test(const Options& options, bool /*again*/) {
  fail(ErrorCode::device, "device '%s': %s", options.device.c_str(), gpu_error().c_str());
}

std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options) {
  const DeviceName name = parse_device(options.device);
  const bool wants_gpu = !name.gpu.empty() && name.gpu != "auto";
  if (wants_gpu || options.handles.context != nullptr)
    fail(ErrorCode::device, "device '%s': %s", options.device.c_str(), gpu_error().c_str());
  return std::make_unique<cpu::CpuBackend>(model, choose_isa(name.isa), options, make_pool(options));
}

}  // namespace phonebit::engine
