// The Python module phonebit._runtime: phonebit::Network for NumPy arrays. phonebit/network.py is its public
// face.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <numeric>

#include "fail.h"
#include "phonebit/network.h"
#include "python/arrays.h"

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
    case ErrorCode::internal:
      break;
  }
  const py::object type = py::module_::import("phonebit.errors").attr(name);
  py::set_error(type, error.what());
}

std::unique_ptr<Network> load(const py::object& path, int threads, const std::string& isa) {
  const auto encoded = py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  if (encoded.find('\0') != std::string::npos) fail(ErrorCode::input, "path: contains a zero byte");
  Options options;
  options.threads = threads;
  options.isa = isa;
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

py::dict run_op(Network& network, int index, const py::sequence& arrays) {
  if (index < 0)
    fail(ErrorCode::input, "layer %d does not exist, there are %zu", index, network.layers().size());
  const auto layer = static_cast<size_t>(index);
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

void define_network(py::module_& module) {
  py::class_<Network>(module, "Network",
                      "A loaded network. Arrays are NHWC; bit tensors are int8 of -1 and +1.")
      .def(py::init(&load), py::arg("path"), py::arg("threads") = 0, py::arg("isa") = "")
      .def_property_readonly("inputs", &Network::inputs)
      .def_property_readonly("outputs", &Network::outputs)
      .def_property_readonly("layers", &Network::layers)
      .def_property_readonly("memory", &memory)
      .def_property_readonly("metadata", &Network::metadata)
      .def_property_readonly("isa", &Network::isa)
      .def_property_readonly("threads", &Network::threads)
      .def("forward", &forward, py::arg("inputs"), "Outputs for a batch, in the order of `outputs`.")
      .def("profile", &profile, py::arg("inputs"), py::arg("repeats") = 10,
           "Milliseconds of each layer for the batch, median of the repeats.")
      .def("activations", &activations, py::arg("inputs"), "Every tensor by name.")
      .def("run_op", &run_op, py::arg("index"), py::arg("operands"),
           "Outputs by name of one layer alone; operands in the order of its `inputs`.");
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
  python::define_network(module);
  module.def("isas", &python::isas, "(name, features, supported) of each instruction set, best first.");
  module.def("version", &version);
}
