#include "engine/network_setup.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <set>

#include "analysis/op_tensors.h"
#include "coexec/pair_backend.h"
#include "cpu/cpu_backend.h"
#include "opencl/opencl_backend.h"
#include "threads/affinity.h"
#include "threads/floating_point_scope.h"
#include "types/fail.h"

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

std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text.empty() ? "none, as this system does not tell" : text;
}

/// How long workers wait awake. For performance beyond the time between two frames of a camera, so that they
/// sleep only when the camera does.
std::chrono::microseconds patience(Hint hint) {
  switch (hint) {
    case Hint::performance:
      return std::chrono::milliseconds(50);
    case Hint::power:
      return std::chrono::microseconds(0);
    case Hint::none:
      break;
  }
  return threads::ThreadPool::kPatience;
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

std::vector<int> choose_cores(const Options& options) {
  if (options.core_list.empty() && options.cores == Cores::any) return {};
  return choose_cores(options, threads::online_processors(), threads::allowed_processors());
}

std::vector<int> choose_cores(const Options& options, const std::vector<threads::Processor>& online,
                              const std::vector<int>& allowed) {
  const auto is_allowed = [&](int processor) {
    return std::find(allowed.begin(), allowed.end(), processor) != allowed.end();
  };
  for (const int processor : options.core_list) {
    if (!is_allowed(processor))
      fail(ErrorCode::input,
           "cores: processor %d does not exist, is offline, or is not this thread's to use; choose from: %s",
           processor, list_text(allowed).c_str());
  }
  std::vector<int> chosen = options.core_list;
  if (chosen.empty() && options.cores != Cores::any) {
    const bool is_big = options.cores == Cores::big;
    for (const threads::Processor& processor : online) {
      if ((is_big ? processor.is_big : processor.is_little) && is_allowed(processor.index))
        chosen.push_back(processor.index);
    }
    if (chosen.empty())
      fail(ErrorCode::input, "cores: none of the %s processors is this thread's to use; it may use: %s",
           is_big ? "big" : "little", list_text(allowed).c_str());
  }
  const std::set<int> ordered(chosen.begin(), chosen.end());
  return {ordered.begin(), ordered.end()};
}

std::shared_ptr<threads::ThreadPool> make_pool(const Options& options) {
  const int threads = options.threads;
  if (threads < 0 || threads > kMaxThreads)
    fail(ErrorCode::input, "threads: got %d, expected 0 (all processors) to %d", threads, kMaxThreads);
  std::vector<int> cores = choose_cores(options);
  const int processors = cores.empty() ? threads::available_processors() : static_cast<int>(cores.size());
  return std::make_shared<threads::ThreadPool>(threads > 0 ? threads : processors, std::move(cores),
                                               patience(options.hint));
}

namespace {

constexpr const char* kDeviceForms =
    "'auto', 'cpu', 'cpu:<instruction set>', 'gpu', 'gpu:<index>', or one of the last two followed by '+cpu' "
    "or '+cpu:<instruction set>'";

[[noreturn]] void fail_unknown(const std::string& device) {
  fail(ErrorCode::input, "device '%s' is unknown; expected %s", device.c_str(), kDeviceForms);
}

/// What "cpu", "gpu:1" or "gpu+cpu:avx2" asks for.
struct DeviceName {
  std::string opencl;  ///< "auto", "gpu" or "gpu:..."; empty: the CPU alone
  bool has_cpu;
  std::string isa;  ///< empty: not said
};

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

std::string device_list() {
  std::string list;
  const auto& devices = opencl::devices();
  for (size_t i = 0; i < devices.size(); ++i)
    list += format_text("%sgpu:%zu %s", i > 0 ? ", " : "", i, devices[i].name.c_str());
  return list.empty() ? "none" : list;
}

/// Index of the OpenCL device that "auto", "gpu" or "gpu:..." means, or -1 for the CPU.
int opencl_index(const std::string& device) {
  const auto& devices = opencl::devices();
  if (device == "auto") return !devices.empty() && devices[0].is_gpu ? 0 : -1;
  unsigned index = 0;
  if (device != "gpu") {
    const char* const end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + 4, end, index);
    if (error != std::errc() || stop != end) fail_unknown(device);
  }
  if (devices.empty()) fail(ErrorCode::device, "device '%s': %s", device.c_str(), opencl_error().c_str());
  if (index >= devices.size())
    fail(ErrorCode::device, "device '%s': there is no such OpenCL device; there are: %s", device.c_str(),
         device_list().c_str());
  return static_cast<int>(index);
}

}  // namespace

std::shared_ptr<opencl::Context> make_context(const Options& options, const std::string& device,
                                              std::string* label) {
  if (options.opencl.context != nullptr) {
    const auto context = opencl::Context::borrow(static_cast<opencl::cl_context>(options.opencl.context),
                                                 static_cast<opencl::cl_device_id>(options.opencl.device),
                                                 static_cast<opencl::cl_command_queue>(options.opencl.queue));
    *label = "gpu " + context->device().name;
    return context;
  }
  const int index = device.empty() ? -1 : opencl_index(device);
  if (index < 0) return nullptr;
  const opencl::Device& found = opencl::devices()[static_cast<size_t>(index)];
  *label = format_text("gpu:%d %s", index, found.name.c_str());
  return opencl::Context::create(found, options.hint);
}

std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options) {
  const DeviceName device = parse_device(options.device);
  if (!device.opencl.empty() && device.has_cpu)
    return coexec::make_backend(model, device.opencl, device.isa, options);
  std::string label;
  std::shared_ptr<opencl::Context> context = make_context(options, device.opencl, &label);
  if (context == nullptr)
    return std::make_unique<cpu::CpuBackend>(model, choose_isa(device.isa), options, make_pool(options));
  return std::make_unique<opencl::OpenClBackend>(model, std::move(context), label, options);
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
  for (const int tensor : analysis::tensors_read(op)) info.inputs.push_back(model.tensor(tensor).name);
  for (const int tensor : analysis::tensors_written(op)) info.outputs.push_back(model.tensor(tensor).name);
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
  const threads::FloatingPointScope rounding;  // drivers start threads, which inherit it
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
  const threads::FloatingPointScope rounding;
  std::string label;
  const std::shared_ptr<opencl::Context> context =
      make_context(options, parse_device(options.device).opencl, &label);
  if (context == nullptr)
    fail(ErrorCode::input, "device '%s' is no OpenCL device; expected 'gpu' or 'gpu:<index>'",
         options.device.c_str());
  return opencl::test_all_kernels(context, options, again);
}

const char* version() { return PHONEBIT_VERSION; }

}  // namespace phonebit
