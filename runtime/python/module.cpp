// The Python module phonebit._runtime: phonebit::Network for NumPy arrays. phonebit/network.py is its public
// face.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <variant>

#include "arrays.h"
#include "energy.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "opencl/self_test_hook.h"
#include "pictures.h"
#include "selection.h"
#include "threads/floating_point_scope.h"
#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::python {
namespace {

const char* dtype_name(const TensorInfo& tensor) {
  return tensor.dtype == ElementType::bit ? "bit" : tensor.dtype == ElementType::u8 ? "u8" : "f32";
}

/// Raises the exception of phonebit.errors that belongs to the error's code.
void raise(const Error& error) {
  const char* name = "PhoneBitError";
  switch (error.code()) {
    case ErrorCode::format:
      name = "ModelFormatError";
      break;
    case ErrorCode::input:
      name = "InputError";
      break;
    case ErrorCode::device:
      name = "DeviceError";
      break;
    case ErrorCode::cancelled:
      name = "CancelledError";
      break;
    case ErrorCode::internal:
      break;
  }
  const py::object type = py::module_::import("phonebit.errors").attr(name);
  py::set_error(type, error.what());
}

void* pointer(uintptr_t number) { return reinterpret_cast<void*>(number); }

/// A device's name, or the caller's OpenCL objects.
void set_device(Options& options, const py::object& device) {
  if (py::isinstance<OpenClHandles>(device))
    options.opencl = device.cast<OpenClHandles>();
  else
    options.device = device.cast<std::string>();
}

Precision precision_of(const std::string& name) {
  if (name == "exact") return Precision::exact;
  if (name == "f16") return Precision::f16;
  if (name == "fast") return Precision::fast;
  fail(ErrorCode::input, "precision: got '%s', expected 'exact', 'f16' or 'fast'", name.c_str());
}

/// (device, method, predicted_ms, [(stage, processor, layer, row_begin, row_end, channel_begin,
/// channel_end)]).
using PlanTuple = std::tuple<std::string, std::string, double, std::vector<std::array<int, 7>>>;

ExecutionPlan plan_of(const PlanTuple& tuple) {
  ExecutionPlan plan{std::get<0>(tuple), std::get<1>(tuple), std::get<2>(tuple), {}};
  for (const std::array<int, 7>& part : std::get<3>(tuple))
    plan.parts.push_back({part[0],
                          part[1] == 0 ? Processor::cpu : Processor::gpu,
                          part[2],
                          {part[3], part[4], part[5], part[6]}});
  return plan;
}

PlanTuple tuple_of(const ExecutionPlan& plan) {
  std::vector<std::array<int, 7>> parts;
  for (const PlannedPart& planned : plan.parts)
    parts.push_back({planned.stage, static_cast<int>(planned.processor), planned.layer,
                     planned.part.row_begin, planned.part.row_end, planned.part.channel_begin,
                     planned.part.channel_end});
  return {plan.device, plan.method, plan.predicted_ms, std::move(parts)};
}

/// An enumeration by its names, in order.
template <class Enum, size_t count>
Enum named_value(const char* what, const std::string& name, const char* const (&names)[count]) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
    all += (i > 0 ? ", '" : "'") + std::string(names[i]) + "'";
  }
  fail(ErrorCode::input, "%s: got '%s', expected one of %s", what, name.c_str(), all.c_str());
}
constexpr const char* kSharings[] = {"auto", "copy", "map", "svm"};
constexpr const char* kCores[] = {"any", "big", "little"};
constexpr const char* kHints[] = {"none", "performance", "power"};
constexpr const char* kSynchronizations[] = {"auto", "events", "user_events", "polling"};

std::unique_ptr<Network> load(const py::object& path, int threads, const py::object& device,
                              const std::string& precision, const std::string& tuning,
                              const std::string& cache_directory, bool command_buffer,
                              const std::optional<PlanTuple>& plan, const std::string& sharing,
                              const std::string& synchronization, bool trial, int sync_limit_ms,
                              const std::variant<std::string, std::vector<int>>& cores,
                              const std::string& hint, bool in_place) {
  const auto encoded = py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  if (encoded.find('\0') != std::string::npos) fail(ErrorCode::input, "path: contains a zero byte");
  Options options;
  options.in_place = in_place;
  options.threads = threads;
  options.precision = precision_of(precision);
  options.tuning = tuning;
  options.cache_directory = cache_directory;
  options.command_buffer = command_buffer;
  if (plan) options.plan = plan_of(*plan);
  options.sharing = named_value<Sharing>("sharing", sharing, kSharings);
  options.synchronization =
      named_value<Synchronization>("synchronization", synchronization, kSynchronizations);
  options.trial = trial;
  options.sync_limit_ms = sync_limit_ms;
  if (const auto* const name = std::get_if<std::string>(&cores))
    options.cores = named_value<Cores>("cores", *name, kCores);
  else
    options.core_list = std::get<std::vector<int>>(cores);
  options.hint = named_value<Hint>("hint", hint, kHints);
  set_device(options, device);
  const py::gil_scoped_release unlocked;
  return std::make_unique<Network>(Network::load(encoded, options));
}

/// Indices of network inputs or outputs among tensors().
std::vector<int> indices_of(const Network& network, const std::vector<TensorInfo>& wanted) {
  std::vector<int> result;
  for (const TensorInfo& tensor : wanted) {
    for (size_t i = 0; i < network.tensors().size(); ++i) {
      if (network.tensors()[i].name == tensor.name) result.push_back(static_cast<int>(i));
    }
  }
  return result;
}

InputArrays input_arrays(const Network& network, const py::sequence& arrays) {
  return {"input", arrays, network.tensors(), indices_of(network, network.inputs())};
}

py::list forward(Network& network, const py::sequence& arrays) {
  const InputArrays inputs = input_arrays(network, arrays);
  OutputArrays outputs(network.tensors(), indices_of(network, network.outputs()), inputs.batch());
  {
    const py::gil_scoped_release unlocked;
    network.forward(inputs.buffers(), outputs.buffers(), inputs.batch());
    outputs.unpack();
  }
  py::list result;
  for (const py::array& array : outputs.arrays()) result.append(array);
  return result;
}

std::vector<double> profile(Network& network, const py::sequence& arrays, int repeats) {
  const InputArrays inputs = input_arrays(network, arrays);
  const py::gil_scoped_release unlocked;
  return network.profile(inputs.buffers(), inputs.batch(), repeats);
}

py::dict named(const Network& network, const std::vector<int>& which, const OutputArrays& outputs) {
  py::dict result;
  for (size_t i = 0; i < which.size(); ++i)
    result[py::str(network.tensors()[static_cast<size_t>(which[i])].name)] = outputs.arrays()[i];
  return result;
}

py::dict activations(Network& network, const py::sequence& arrays) {
  const InputArrays inputs = input_arrays(network, arrays);
  std::vector<int> all(network.tensors().size());
  std::iota(all.begin(), all.end(), 0);
  OutputArrays outputs(network.tensors(), all, inputs.batch());
  {
    const py::gil_scoped_release unlocked;
    network.activations(inputs.buffers(), outputs.buffers(), inputs.batch());
    outputs.unpack();
  }
  return named(network, all, outputs);
}

size_t checked_layer(int index, const Network& network) {
  if (index < 0)
    fail(ErrorCode::input, "layer %d does not exist, there are %zu", index, network.layers().size());
  return static_cast<size_t>(index);
}

py::dict run_op(Network& network, int index, const py::sequence& arrays) {
  const size_t layer = checked_layer(index, network);
  const InputArrays operands("operand", arrays, network.tensors(), network.layer_inputs(layer));
  const std::vector<int>& written = network.layer_outputs(layer);
  OutputArrays results(network.tensors(), written, operands.batch());
  {
    const py::gil_scoped_release unlocked;
    network.run_op(layer, operands.buffers(), results.buffers(), operands.batch());
    results.unpack();
  }
  return named(network, written, results);
}

using Buffers = std::vector<std::pair<uintptr_t, size_t>>;

std::vector<DeviceBuffer> device_buffers(const Buffers& buffers) {
  std::vector<DeviceBuffer> result;
  for (const auto& [memory, offset] : buffers) result.push_back({pointer(memory), offset});
  return result;
}

void forward_on_device(Network& network, const Buffers& inputs, const Buffers& outputs, int batch) {
  const py::gil_scoped_release unlocked;
  network.forward_on_device(device_buffers(inputs), device_buffers(outputs), batch);
}

std::vector<std::string> candidates(const Network& network, int index) {
  return network.candidates(checked_layer(index, network));
}

py::tuple measure_choice(Network& network, int index, const std::string& choice, int batch, int repeats) {
  const size_t layer = checked_layer(index, network);
  bool is_equal = false;
  double milliseconds = 0.0;
  {
    const py::gil_scoped_release unlocked;
    milliseconds = network.measure_choice(layer, choice, batch, repeats, &is_equal);
  }
  return py::make_tuple(milliseconds, is_equal);
}

std::string tuning_line(const Network& network, int index, const std::string& choice) {
  return network.tuning_line(checked_layer(index, network), choice);
}

using PartTuple = std::array<int, 4>;  // row_begin, row_end, channel_begin, channel_end

OutputPart part_of(const PartTuple& part) { return {part[0], part[1], part[2], part[3]}; }

std::optional<OutputPart> part_of(const std::optional<PartTuple>& part) {
  if (!part) return std::nullopt;
  return part_of(*part);
}

py::dict measure_layer(Network& network, int index, const std::optional<PartTuple>& cpu,
                       const std::optional<PartTuple>& gpu, int repeats) {
  const size_t layer = checked_layer(index, network);
  LayerTimes times{};
  {
    const py::gil_scoped_release unlocked;
    times = network.measure_layer(layer, part_of(cpu), part_of(gpu), repeats);
  }
  py::dict result;
  result["total_us"] = times.total;
  result["cpu_us"] = times.cpu;
  result["gpu_us"] = times.gpu;
  return result;
}

py::list dispatch(Network& network, int index, const PartTuple& gpu) {
  py::list result;
  for (const DispatchInfo& info : network.dispatch(checked_layer(index, network), part_of(gpu))) {
    py::dict launch;
    launch["kernel"] = info.kernel;
    launch["choice"] = info.choice;
    launch["global"] = py::make_tuple(info.global[0], info.global[1], info.global[2]);
    launch["local"] = py::make_tuple(info.local[0], info.local[1], info.local[2]);
    result.append(launch);
  }
  return result;
}

py::dict coexec(const Network& network) {
  const CoexecInfo info = network.coexec();
  py::dict result;
  result["sharing"] = kSharings[static_cast<int>(info.sharing)];
  result["synchronization"] = kSynchronizations[static_cast<int>(info.synchronization)];
  result["is_on_cpu_alone"] = info.is_on_cpu_alone;
  result["is_on_gpu_alone"] = info.is_on_gpu_alone;
  result["is_on_trial"] = info.is_on_trial;
  result["plan_ms"] = info.plan_ms;
  result["cpu_ms"] = info.cpu_ms;
  result["gpu_ms"] = info.gpu_ms;
  return result;
}

/// The records with the names and numbers of the file's.
py::list preprocessing(const Network& network) {
  py::list result;
  for (const Preprocessing& rule : network.preprocessing()) {
    py::dict record;
    record["input"] = rule.input;
    record["color_order"] = static_cast<int>(rule.color_order);
    record["resize"] = static_cast<int>(rule.resize);
    record["resize_to"] = rule.resize_to;
    record["fill_level"] = rule.fill_level;
    record["interpolation"] = static_cast<int>(rule.interpolation);
    record["low"] = rule.low;
    record["high"] = rule.high;
    record["mean"] = std::vector<double>(std::begin(rule.mean), std::end(rule.mean));
    record["deviation"] = std::vector<double>(std::begin(rule.deviation), std::end(rule.deviation));
    result.append(record);
  }
  return result;
}

/// The same for detection heads; "anchors" has pairs.
py::list detection(const Network& network) {
  py::list result;
  for (const DetectionHead& head : network.detection()) {
    py::list anchors;
    for (const Anchor& anchor : head.anchors) anchors.append(py::make_tuple(anchor.width, anchor.height));
    py::dict record;
    record["output"] = head.output;
    record["kind"] = static_cast<int>(head.kind);
    record["anchor_count"] = head.anchors.size();
    record["anchors"] = anchors;
    result.append(record);
  }
  return result;
}

py::dict startup(const Network& network) {
  const StartupInfo info = network.startup();
  py::dict result;
  result["programs_built"] = info.programs_built;
  result["programs_loaded"] = info.programs_loaded;
  result["cache_entries_rejected"] = info.cache_entries_rejected;
  result["self_tests_run"] = info.self_tests_run;
  result["build_ms"] = info.build_ms;
  result["uses_command_buffer"] = info.uses_command_buffer;
  return result;
}

py::dict memory(const Network& network) {
  const MemoryInfo info = network.memory();
  py::dict result;
  result["arena_bytes"] = info.arena_bytes;
  result["lower_bound_bytes"] = info.lower_bound_bytes;
  result["scratch_bytes"] = info.scratch_bytes;
  result["weight_bytes"] = info.weight_bytes;
  result["file_bytes"] = info.file_bytes;
  return result;
}

/// Between the problems of a self-test: Ctrl-C ends it, and the first time people are told why they wait.
void before_self_test() {
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  py::module_::import("phonebit.first_use").attr("announce")();
}

std::vector<std::tuple<std::string, std::string, bool, std::string>> self_test(
    const py::object& device, const std::string& cache_directory, bool again) {
  Options options;
  options.cache_directory = cache_directory;
  set_device(options, device);
  const py::gil_scoped_release unlocked;
  std::vector<std::tuple<std::string, std::string, bool, std::string>> results;
  for (SelfTestResult& result : opencl_self_test(options, again))
    results.emplace_back(result.op, result.choice, result.passed, result.detail);
  return results;
}

/// A list of pairs as a dict.
template <class Value>
py::dict dict_of(const std::vector<std::pair<std::string, Value>>& pairs) {
  py::dict result;
  for (const auto& [name, value] : pairs) result[py::str(name)] = value;
  return result;
}

py::list isas() {
  py::list result;
  for (const IsaInfo& isa : instruction_sets())
    result.append(py::make_tuple(isa.name, isa.features, isa.supported));
  return result;
}

void define_records(py::module_& module) {
  py::class_<TensorInfo>(module, "TensorInfo",
                         "An input or output: name, dtype (bit, u8, f32), shape (h, w, c).")
      .def_readonly("name", &TensorInfo::name)
      .def_property_readonly("dtype", &dtype_name)
      .def_property_readonly("shape", [](const TensorInfo& tensor) {
        return py::make_tuple(tensor.height, tensor.width, tensor.channels);
      });
  py::class_<LayerInfo>(module, "LayerInfo", "One op of the file and the kernel that serves it.")
      .def_readonly("name", &LayerInfo::name)
      .def_readonly("kind", &LayerInfo::kind)
      .def_readonly("kernel", &LayerInfo::kernel)
      .def_readonly("macs", &LayerInfo::macs)
      .def_readonly("binary", &LayerInfo::binary)
      .def_readonly("weight_bytes", &LayerInfo::weight_bytes)
      .def_readonly("inputs", &LayerInfo::inputs)
      .def_readonly("outputs", &LayerInfo::outputs);
}

void define_opencl(py::module_& module) {
  using Info = OpenClDeviceInfo;
  py::class_<Info>(module, "OpenClDevice", "An OpenCL device and what it can do.")
      .def_readonly("index", &Info::index)
      .def_readonly("name", &Info::name)
      .def_readonly("platform", &Info::platform)
      .def_readonly("vendor", &Info::vendor)
      .def_readonly("family", &Info::family)
      .def_readonly("version", &Info::version)
      .def_readonly("driver_version", &Info::driver_version)
      .def_readonly("is_gpu", &Info::is_gpu)
      .def_readonly("compute_units", &Info::compute_units)
      .def_readonly("clock_mhz", &Info::clock_mhz)
      .def_readonly("global_bytes", &Info::global_bytes)
      .def_readonly("local_bytes", &Info::local_bytes)
      .def_property_readonly("capabilities", [](const Info& info) { return dict_of(info.capabilities); })
      .def_property_readonly("kernels", [](const Info& info) { return dict_of(info.kernels); })
      .def_property_readonly("id", [](const Info& info) { return reinterpret_cast<uintptr_t>(info.id); });
  py::class_<OpenClHandles>(module, "OpenClHandles", "OpenCL objects of the caller, as numbers.")
      .def(py::init([](uintptr_t context, uintptr_t device, uintptr_t queue) {
             return OpenClHandles{pointer(context), pointer(device), pointer(queue)};
           }),
           py::arg("context"), py::arg("device"), py::arg("queue") = 0);
  module.def("use_opencl_library", &use_opencl_library, py::arg("path"));
  module.def("opencl_devices", &opencl_devices, "OpenCL devices, GPUs first.");
  module.def("opencl_error", &opencl_error, "Why there is no OpenCL device, or an empty text.");
  opencl::set_self_test_hook(&before_self_test);
  module.def("opencl_self_test", &self_test, py::arg("device"), py::arg("cache_directory") = "",
             py::arg("again") = false, "(op, choice, passed, detail) of every kernel variant.");
}

void define_network(py::module_& module) {
  py::class_<Network>(module, "Network",
                      "A loaded network. Arrays are NHWC; bit tensors are int8 of -1 and +1.")
      .def(py::init(&load), py::arg("path"), py::arg("threads") = 0, py::arg("device") = "cpu",
           py::arg("precision") = "exact", py::arg("tuning") = "", py::arg("cache_directory") = "",
           py::arg("command_buffer") = true, py::arg("plan") = std::nullopt, py::arg("sharing") = "auto",
           py::arg("synchronization") = "auto", py::arg("trial") = true,
           py::arg("sync_limit_ms") = Options{}.sync_limit_ms, py::arg("cores") = "any",
           py::arg("hint") = "none", py::arg("in_place") = false)
      .def_property_readonly("device", &Network::device)
      .def_property_readonly("warnings", &Network::warnings)
      .def_property_readonly("startup", &startup)
      .def_property_readonly("opencl_context",
                             [](const Network& n) { return reinterpret_cast<uintptr_t>(n.opencl().context); })
      .def_property_readonly("opencl_queue",
                             [](const Network& n) { return reinterpret_cast<uintptr_t>(n.opencl().queue); })
      .def("forward_on_device", &forward_on_device, py::arg("inputs"), py::arg("outputs"), py::arg("batch"))
      .def("candidates", &candidates, py::arg("index"))
      .def("measure_choice", &measure_choice, py::arg("index"), py::arg("choice"), py::arg("batch") = 1,
           py::arg("repeats") = 10)
      .def("measure_layer", &measure_layer, py::arg("index"), py::arg("cpu_part"), py::arg("gpu_part"),
           py::arg("repeats") = 10)
      .def("dispatch", &dispatch, py::arg("index"), py::arg("gpu_part"))
      .def_property_readonly("plan_key", &Network::plan_key)
      .def_property_readonly("plan", [](const Network& network) { return tuple_of(network.plan()); })
      .def_property_readonly("coexec", &coexec)
      .def("tuning_line", &tuning_line, py::arg("index"), py::arg("choice"))
      .def_property_readonly("inputs", &Network::inputs)
      .def_property_readonly("outputs", &Network::outputs)
      .def_property_readonly("layers", &Network::layers)
      .def_property_readonly("preprocessing", &preprocessing)
      .def_property_readonly("detection", &detection)
      .def_property_readonly("labels", &Network::labels)
      .def_property_readonly("memory", &memory)
      .def_property_readonly("metadata", &Network::metadata)
      .def_property_readonly("isa", &Network::isa)
      .def_property_readonly("threads", &Network::threads)
      .def("forward", &forward, py::arg("inputs"), "Outputs for a batch, in the order of `outputs`.")
      .def("cancel", &Network::cancel, "Ends passes that run or wait, with CancelledError.")
      .def("profile", &profile, py::arg("inputs"), py::arg("repeats") = 10,
           "Milliseconds of each layer for the batch, median of the repeats.")
      .def("activations", &activations, py::arg("inputs"), "Every tensor by name.")
      .def("run_op", &run_op, py::arg("index"), py::arg("operands"),
           "Outputs by name of one layer alone; operands in the order of its `inputs`.");
}

/// A FloatingPointScope as a context manager.
struct FloatingPointContext {
  std::optional<threads::FloatingPointScope> scope;
};

void define_floating_point(py::module_& module) {
  py::class_<FloatingPointContext>(module, "FloatingPointScope",
                                   "The thread rounds as IEEE 754 says by default inside a with block.")
      .def(py::init<>())
      .def("__enter__", [](FloatingPointContext& context) { context.scope.emplace(); })
      .def("__exit__", [](FloatingPointContext& context, const py::args&) { context.scope.reset(); });
}

}  // namespace
}  // namespace phonebit::python

PYBIND11_MODULE(_runtime, module) {
  using namespace phonebit;
  module.doc() = "C++ runtime of PhoneBit.";
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      python::raise(error);
    }
  });
  python::define_records(module);
  python::define_opencl(module);
  python::define_network(module);
  python::define_pictures(module);
  python::define_energy(module);
  python::define_selection(module);
  python::define_floating_point(module);
  module.def("isas", &python::isas, "(name, features, supported) of each instruction set, best first.");
  module.def("version", &version);
}
