#include "network_setup.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "coexec/coexec_backend.h"
#include "cpu/cpu_backend.h"
#include "fail.h"
#include "lowering/op_tensors.h"
#include "opencl/opencl_backend.h"
#include "threads/thread_pool.h"

#ifndef PHONEBIT_VERSION
#error "the build defines PHONEBIT_VERSION"
#endif

namespace phonebit {
namespace {

using format::DataType;
using format::OpKind;

constexpr int kMaxThreads = 1024;

ElementType element_type(DataType dtype) {
  return dtype == DataType::kBit  ? ElementType::bit
         : dtype == DataType::kU8 ? ElementType::u8
                                  : ElementType::f32;
}

int64_t constant_bytes(const loader::Model& model, const loader::Op& op) {
  int64_t bytes = 0;
  const auto add = [&](int constant) {
    if (constant >= 0) bytes += static_cast<int64_t>(model.constant(constant).bytes());
  };
  add(op.record.weights);
  add(op.record.threshold);
  add(op.record.flip_mask);
  for (const format::StepRecord& step : op.steps) {
    add(step.constant_a);
    add(step.constant_b);
  }
  return bytes;
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

}  // namespace

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

int choose_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    fail(ErrorCode::input, "threads: got %d, expected 0 (all processors) to %d", threads, kMaxThreads);
  return threads > 0 ? threads : threads::available_processors();
}

namespace {

constexpr const char* kDeviceForms =
    "'cpu', 'auto', 'gpu', 'gpu:<index>' or either of these followed by '+cpu'";
constexpr const char* kWithCpu = "+cpu";

/// The OpenCL device of "gpu+cpu" or "gpu:1+cpu"; empty for other names.
std::string gpu_of_pair(const std::string& device) {
  const size_t at = device.rfind(kWithCpu);
  const bool is_pair = at != std::string::npos && at + std::string(kWithCpu).size() == device.size();
  return is_pair ? device.substr(0, at) : "";
}

std::string device_list() {
  std::string list;
  const auto& devices = opencl::devices();
  for (size_t i = 0; i < devices.size(); ++i)
    list += format_text("%sgpu:%zu %s", i > 0 ? ", " : "", i, devices[i].name.c_str());
  return list.empty() ? "none" : list;
}

/// Index of the OpenCL device that a name means, or -1 for the CPU.
int opencl_index(const std::string& device) {
  if (device == "cpu") return -1;
  if (device == "auto") return !opencl::devices().empty() && opencl::devices()[0].is_gpu ? 0 : -1;
  const bool has_index = device.rfind("gpu:", 0) == 0;
  if (device != "gpu" && !has_index)
    fail(ErrorCode::input, "device '%s' is unknown; expected %s", device.c_str(), kDeviceForms);
  unsigned index = 0;
  const char* const end = device.data() + device.size();
  if (has_index) {
    const auto [stop, error] = std::from_chars(device.data() + 4, end, index);
    if (error != std::errc() || stop != end)
      fail(ErrorCode::input, "device '%s': expected %s", device.c_str(), kDeviceForms);
  }
  if (opencl::devices().empty())
    fail(ErrorCode::device, "device '%s': %s", device.c_str(), opencl_error().c_str());
  if (index >= opencl::devices().size())
    fail(ErrorCode::device, "device '%s': there is no such OpenCL device; there are: %s", device.c_str(),
         device_list().c_str());
  return static_cast<int>(index);
}

}  // namespace

std::shared_ptr<opencl::Context> make_context(const Options& options, std::string* label) {
  if (options.opencl.context != nullptr) {
    const auto context = opencl::Context::borrow(static_cast<opencl::cl_context>(options.opencl.context),
                                                 static_cast<opencl::cl_device_id>(options.opencl.device),
                                                 static_cast<opencl::cl_command_queue>(options.opencl.queue));
    *label = "gpu " + context->device().name;
    return context;
  }
  const int index = opencl_index(options.device);
  if (index < 0) return nullptr;
  const opencl::Device& device = opencl::devices()[static_cast<size_t>(index)];
  *label = format_text("gpu:%d %s", index, device.name.c_str());
  return opencl::Context::create(device);
}

std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options) {
  std::string label;
  const std::string gpu = gpu_of_pair(options.device);
  if (!gpu.empty()) {
    Options of_gpu = options;
    of_gpu.device = gpu;
    std::shared_ptr<opencl::Context> context = make_context(of_gpu, &label);
    if (context == nullptr)
      fail(ErrorCode::input, "device '%s': expected %s", options.device.c_str(), kDeviceForms);
    return std::make_unique<coexec::CoexecBackend>(model, std::move(context), label, choose_isa(options.isa),
                                                   options);
  }
  if (std::shared_ptr<opencl::Context> context = make_context(options, &label))
    return std::make_unique<opencl::OpenClBackend>(model, std::move(context), label, options);
  return std::make_unique<cpu::CpuBackend>(model, choose_isa(options.isa), choose_threads(options.threads),
                                           options.max_memory_bytes, options.precision);
}

TensorInfo describe_tensor(const loader::Tensor& tensor) {
  return {tensor.name, element_type(tensor.dtype), tensor.height, tensor.width, tensor.channels};
}

Preprocessing describe_preprocessing(const format::PreprocessingRecord& record) {
  static_assert(static_cast<uint32_t>(ColorOrder::rgba) == static_cast<uint32_t>(format::ColorOrder::kRgba));
  static_assert(static_cast<uint32_t>(Resize::letterbox) ==
                static_cast<uint32_t>(format::Resize::kLetterbox));
  static_assert(static_cast<uint32_t>(Interpolation::bicubic) ==
                static_cast<uint32_t>(format::Interpolation::kBicubic));
  Preprocessing result{};
  result.input = static_cast<int>(record.input);
  result.color_order = static_cast<ColorOrder>(record.color_order);
  result.resize = static_cast<Resize>(record.resize);
  result.resize_to = static_cast<int>(record.resize_to);
  result.fill_level = static_cast<int>(record.fill_level);
  result.interpolation = static_cast<Interpolation>(record.interpolation);
  result.low = record.low;
  result.high = record.high;
  std::copy(std::begin(record.mean), std::end(record.mean), result.mean);
  std::copy(std::begin(record.deviation), std::end(record.deviation), result.deviation);
  return result;
}

DetectionHead describe_detection(const format::DetectionRecord& record) {
  static_assert(static_cast<uint32_t>(HeadKind::yolov2) == static_cast<uint32_t>(format::HeadKind::kYolov2));
  DetectionHead result{static_cast<int>(record.output), static_cast<HeadKind>(record.kind), {}};
  for (uint32_t i = 0; i < record.anchor_count; ++i)
    result.anchors.push_back({record.anchors[2 * i], record.anchors[2 * i + 1]});
  return result;
}

LayerInfo describe_layer(const loader::Model& model, const loader::Op& op) {
  LayerInfo info;
  info.name = op.name;
  info.kind = loader::name_of(op.kind);
  info.macs = model.macs(op);
  info.binary = op.kind == OpKind::kBinaryConv2d || op.kind == OpKind::kBinaryDepthwiseConv2d;
  info.weight_bytes = constant_bytes(model, op);
  for (const int tensor : lowering::tensors_read(op)) info.inputs.push_back(model.tensor(tensor).name);
  for (const int tensor : lowering::tensors_written(op)) info.outputs.push_back(model.tensor(tensor).name);
  return info;
}

std::vector<IsaInfo> instruction_sets() {
  std::vector<IsaInfo> result;
  for (const cpu::Isa* const* isa = cpu::all_isas(); *isa != nullptr; ++isa)
    result.push_back({(*isa)->name, (*isa)->features, (*isa)->supported()});
  return result;
}

void use_opencl_library(const std::string& path) { opencl::use_library(path); }

std::string opencl_error() {
  try {
    opencl::api();
  } catch (const Error& error) {
    return error.what();
  }
  return opencl::devices().empty()
             ? opencl::library_path() + " offers no device with OpenCL 1.2 and a compiler"
             : "";
}

std::vector<OpenClDeviceInfo> opencl_devices() {
  std::vector<OpenClDeviceInfo> result;
  for (const opencl::Device& device : opencl::devices()) {
    OpenClDeviceInfo info;
    info.index = static_cast<int>(result.size());
    info.name = device.name;
    info.platform = device.platform_name;
    info.vendor = device.vendor;
    info.family = device.family;
    info.version = device.version;
    info.driver_version = device.driver_version;
    info.is_gpu = device.is_gpu;
    info.compute_units = device.compute_units;
    info.clock_mhz = device.clock_mhz;
    info.global_bytes = device.global_bytes;
    info.local_bytes = device.local_bytes;
    info.capabilities = {{"images", device.has_images},
                         {"half", device.has_half},
                         {"fused_multiply_add", device.has_fma},
                         {"exact_division", device.has_exact_division},
                         {"unified_memory", device.has_unified_memory},
                         {"command_buffer", device.has_command_buffer},
                         {"svm_coarse", device.has_svm_coarse},
                         {"svm_fine", device.has_svm_fine},
                         {"svm_atomics", device.has_svm_atomics}};
    info.kernels = opencl::table_choices(device);
    info.id = device.id;
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<SelfTestResult> opencl_self_test(const Options& options, bool again) {
  std::string label;
  const std::shared_ptr<opencl::Context> context = make_context(options, &label);
  if (context == nullptr)
    fail(ErrorCode::input, "device '%s' is no OpenCL device; expected 'gpu' or 'gpu:<index>'",
         options.device.c_str());
  return opencl::test_all_kernels(context, options, again);
}

const char* version() { return PHONEBIT_VERSION; }

}  // namespace phonebit
