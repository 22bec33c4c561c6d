// The Python module phonebit._runtime, what phonebit/ is built on.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string_view>

#include "bindings.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "gil_release.h"
#include "loader/loader.h"
#include "threads/floating_point_scope.h"
#include "types/error.h"
#include "types/interrupt.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

/// Raises the exception of phonebit.errors that belongs to the error's code.
void raise(const Error& error) {
  if (PyErr_Occurred() != nullptr) return;  // what a signal's handler raised has ended the work
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

py::list isas() {
  py::list result;
  for (const IsaInfo& isa : instruction_sets())
    result.append(py::make_tuple(isa.name, isa.features, isa.supported));
  return result;
}

/// Throws unless the bytes are a file that a Network would be made of, on a machine that is large enough.
void check_file(const py::bytes& content) {
  const std::string_view bytes(content);
  const GilRelease unlocked;
  loader::load_model(loader::FileBytes::of_memory(bytes.data(), bytes.size()));
}

unsigned long main_thread = 0;

/// Runs handlers of signals that have come (Ctrl-C), as Python does between two instructions; true if one has
/// raised an exception. Python runs them in its main thread only.
bool has_signal_raised() {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const py::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
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
}  // namespace phonebit::engine::python

PYBIND11_MODULE(_runtime, module) {
  using namespace phonebit::engine;
  module.doc() = "C++ runtime of PhoneBit.";
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      python::raise(error);
    }
  });
  python::define_records(module);
  python::define_gpus(module);
  python::define_network(module);
  python::define_images(module);
  python::define_energy(module);
  python::define_measure(module);
  python::define_selection(module);
  python::define_floating_point(module);
  python::main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  interrupt_hook = &python::has_signal_raised;
  module.def("isas", &python::isas, "(name, features, supported) of each instruction set, best first.");
  module.def("version", &version);
  module.def("check_file", &python::check_file, py::arg("content"),
             "Raises ModelFormatError unless these bytes are a sound .pbit file.");
}
