#include "engine/network.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "descriptions.h"
#include "gil_release.h"
#include "options.h"
#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

std::unique_ptr<Network> load(const py::object& path, int threads, const py::object& device,
                              const py::kwargs& others) {
  const auto encoded = py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  if (encoded.find('\0') != std::string::npos) fail(ErrorCode::input, "path: contains a zero byte");
  others["threads"] = threads;
  others["device"] = device;
  const Options options = options_of(others);
  const GilRelease unlocked;
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
  return {"input", arrays, network.tensors(), indices_of(network, network.inputs()), true};
}

py::list list_of(const OutputArrays& outputs) {
  py::list result;
  for (const py::array& array : outputs.arrays()) result.append(array);
  return result;
}

py::list forward(Network& network, const py::sequence& arrays) {
  const InputArrays inputs = input_arrays(network, arrays);
  OutputArrays outputs(network.tensors(), indices_of(network, network.outputs()), inputs.batch());
  {
    const GilRelease unlocked;
    network.forward(inputs.buffers(), outputs.buffers(), inputs.batch());
    outputs.unpack();
  }
  return list_of(outputs);
}

/// An inference that was begun; the network must outlive it.
class BegunInference {
 public:
  BegunInference(Network& network, const py::sequence& arrays)
      : network_(network),
        inputs_(input_arrays(network, arrays)),
        outputs_(network.tensors(), indices_of(network, network.outputs()), inputs_.batch()) {
    const GilRelease unlocked;
    inference_ = network_.begin(inputs_.buffers(), outputs_.buffers(), inputs_.batch());
  }

  py::list finish() {
    {
      const GilRelease unlocked;
      network_.finish(*inference_);
      outputs_.unpack();
    }
    return list_of(outputs_);
  }

 private:
  Network& network_;
  InputArrays inputs_;
  OutputArrays outputs_;
  std::shared_ptr<Network::Inference> inference_;
};

std::vector<double> profile(Network& network, const py::sequence& arrays, int repeats) {
  const InputArrays inputs = input_arrays(network, arrays);
  const GilRelease unlocked;
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
    const GilRelease unlocked;
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
    const GilRelease unlocked;
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
  const GilRelease unlocked;
  network.forward_on_device(device_buffers(inputs), device_buffers(outputs), batch);
}

std::vector<std::string> candidates(const Network& network, int index) {
  return network.candidates(checked_layer(index, network));
}

std::vector<std::pair<std::string, std::string>> programs(const Network& network, int index) {
  std::vector<std::pair<std::string, std::string>> result;
  for (KernelProgram& program : network.programs(checked_layer(index, network)))
    result.emplace_back(std::move(program.kernel), std::move(program.text));
  return result;
}

py::tuple measure_choice(Network& network, int index, const std::string& choice, int batch, int repeats) {
  const size_t layer = checked_layer(index, network);
  bool is_equal = false;
  double milliseconds = 0.0;
  {
    const GilRelease unlocked;
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
    const GilRelease unlocked;
    times = network.measure_layer(layer, part_of(cpu), part_of(gpu), repeats);
  }
  py::dict result;
  result["total_us"] = times.total;
  result["cpu_us"] = times.cpu;
  result["gpu_us"] = times.gpu;
  return result;
}

py::dict measure_pass(Network& network, int repeats) {
  PassTimes times{};
  {
    const GilRelease unlocked;
    times = network.measure_pass(repeats);
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

}  // namespace

void define_network(py::module_& module) {
  py::class_<BegunInference>(module, "Pass", "A pass that was begun.")
      .def("finish", &BegunInference::finish, "Waits for it; the outputs, in the order of `outputs`.");
  py::class_<Network>(module, "Network",
                      "A loaded network. Arrays are NHWC; bit tensors are int8 of -1 and +1.")
      .def(py::init(&load), py::arg("path"), py::arg("threads") = 0, py::arg("device") = "cpu")
      .def_property_readonly("device", &Network::device)
      .def_property_readonly("warnings", &Network::warnings)
      .def_property_readonly("startup", &startup)
      .def_property_readonly(
          "opencl_context", [](const Network& n) { return reinterpret_cast<uintptr_t>(n.handles().context); })
      .def_property_readonly("opencl_queue",
                             [](const Network& n) { return reinterpret_cast<uintptr_t>(n.handles().queue); })
      .def("forward_on_device", &forward_on_device, py::arg("inputs"), py::arg("outputs"), py::arg("batch"))
      .def("candidates", &candidates, py::arg("index"))
      .def("programs", &programs, py::arg("index"))
      .def("measure_choice", &measure_choice, py::arg("index"), py::arg("choice"), py::arg("batch") = 1,
           py::arg("repeats") = 10)
      .def("measure_pass", &measure_pass, py::arg("repeats"))
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
      .def(
          "begin",
          [](Network& network, const py::sequence& inputs) {
            return std::make_unique<BegunInference>(network, inputs);
          },
          py::arg("inputs"), py::keep_alive<0, 1>(), "Begins a pass; the inputs may change afterwards.")
      .def("cancel", &Network::cancel, "Ends passes that run or wait, with CancelledError.")
      .def("profile", &profile, py::arg("inputs"), py::arg("repeats") = 10,
           "Milliseconds of each layer for the batch, median of the repeats.")
      .def("activations", &activations, py::arg("inputs"), "Every tensor by name.")
      .def("run_op", &run_op, py::arg("index"), py::arg("operands"),
           "Outputs by name of one layer alone; operands in the order of its `inputs`.");
}

}  // namespace phonebit::engine::python
