#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "energy/energy_meter.h"
#include "energy/energy_source.h"
#include "energy/energy_window.h"
#include "gil_release.h"
#include "types/error.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

using energy::Meter;
using energy::Source;
using energy::Span;
using energy::Trace;

std::vector<std::pair<std::string, bool>> rails(const Source& source) {
  std::vector<std::pair<std::string, bool>> result;
  for (const energy::Rail& rail : source.info().rails) result.emplace_back(rail.name, rail.is_counted);
  return result;
}

py::tuple tuple_of(const std::vector<double>& values) { return py::tuple(py::cast(values)); }

py::tuple read(Source& source) {
  std::vector<double> reading;
  {
    const GilRelease unlocked;
    reading = source.read();
  }
  return tuple_of(reading);
}

/// Calls a function with Python's lock, in any thread, and returns its result and the lock. Before 3.14 a thread
/// that waits for the lock while Python ends is ended by an unwinding that must not pass the runtime's frames, nor
/// destructors that need the lock: it stays here, as with GilRelease.
std::pair<PyObject*, PyGILState_STATE> call_locked(PyObject* function) {
  try {
    const PyGILState_STATE state = PyGILState_Ensure();
    return {function == nullptr ? nullptr : PyObject_CallNoArgs(function), state};
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

energy::SourceInfo info_of(const py::object& source) {
  energy::SourceInfo info;
  info.name = source.attr("name").cast<std::string>();
  info.is_counter = source.attr("kind").cast<std::string>() == "counter";
  info.unit_mj = source.attr("unit_mj").cast<double>();
  info.period_s = source.attr("period_s").cast<double>();
  for (const py::handle rail : source.attr("rails"))
    info.rails.push_back({rail.attr("name").cast<std::string>(), rail.attr("counted").cast<bool>()});
  return info;
}

/// A phonebit.energy.EnergySource.
class PythonSource final : public Source {
 public:
  explicit PythonSource(const py::object& source)
      : Source(info_of(source)), read_(py::object(source.attr("read")).release().ptr()) {}
  ~PythonSource() override {
    const PyGILState_STATE state = call_locked(nullptr).second;
    Py_DECREF(read_);
    PyGILState_Release(state);
  }
  std::vector<double> read() override {
    const auto [result, state] = call_locked(read_);
    struct Unlocking {
      PyGILState_STATE state;
      ~Unlocking() { PyGILState_Release(state); }
    } const unlocking{state};
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result).cast<std::vector<double>>();
  }

 private:
  PyObject* read_;  // its method
};

/// Runs body without Python's lock, which a source of Python needs meanwhile.
template <class Body>
auto without_lock(const Body& body) {
  const GilRelease unlocked;
  return body();
}

/// A Meter as a context manager.
struct MeterContext {
  MeterContext(const py::object& source, double answer_s)
      : meter(std::make_unique<Meter>(std::make_unique<PythonSource>(source), answer_s)) {}
  ~MeterContext() { end(); }
  void end() {
    without_lock([&] { meter.reset(); });
  }
  std::unique_ptr<Meter> meter;
};

/// Runs body; what the engine's energy functions throw becomes an EnergyError.
template <class Body>
auto with_energy_errors(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    py::set_error(py::module_::import("phonebit.energy.source").attr("EnergyError"), error.what());
    throw py::error_already_set();
  }
}

/// (kind, sources, why there are none) of every kind.
std::vector<std::tuple<std::string, energy::SourceList, std::string>> discover(const std::string& root) {
  const GilRelease unlocked;
  std::vector<std::tuple<std::string, energy::SourceList, std::string>> result;
  for (energy::Finding& finding : energy::discover(root))
    result.emplace_back(finding.kind, std::move(finding.sources), finding.absent);
  return result;
}

}  // namespace

void define_energy(py::module_& module) {
  py::class_<Source>(module, "EnergySource", "Something below /sys that tells energy or power.")
      .def_property_readonly("name", [](const Source& source) { return source.info().name; })
      .def_property_readonly("description", [](const Source& source) { return source.info().description; })
      .def_property_readonly(
          "kind", [](const Source& source) { return source.info().is_counter ? "counter" : "power"; })
      .def_property_readonly("unit_mj", [](const Source& source) { return source.info().unit_mj; })
      .def_property_readonly("period_s", [](const Source& source) { return source.info().period_s; })
      .def_property_readonly("rails", &rails, "(name, whether it counts) of each.")
      .def(
          "read", [](Source& source) { return with_energy_errors([&] { return read(source); }); },
          "mJ since it was found, or mW, of every rail.");
  py::class_<Span>(module, "EnergySpan", "Energy between the first and the last reading of a trace.")
      .def_readonly("window_s", &Span::window_s)
      .def_property_readonly("rails_mj", [](const Span& span) { return tuple_of(span.rails_mj); })
      .def_readonly("energy_mj", &Span::energy_mj)
      .def_readonly("step_mj", &Span::step_mj)
      .def_readonly("changes", &Span::changes)
      .def_readonly("has_stopped", &Span::has_stopped)
      .def_property_readonly("mean_mw", &Span::mean_mw)
      .def_property_readonly("uncertainty", &Span::uncertainty)
      .def_property_readonly("update_s", &Span::update_s);
  py::class_<Trace>(module, "EnergyTrace", "Readings of one source; whether each rail counts.")
      .def(py::init<std::vector<bool>, bool, double>(), py::arg("counted"), py::arg("is_counter"),
           py::arg("unit_mj") = 0.0)
      .def("add", &Trace::add, py::arg("time_s"), py::arg("reading"))
      .def("span", &Trace::span)
      .def("__len__", &Trace::count);
  py::class_<MeterContext>(module, "EnergyMeter", "A thread that reads a source inside a with block.")
      .def(py::init<py::object, double>(), py::arg("source"), py::arg("answer_s"))
      .def("__enter__", [](MeterContext& self) -> MeterContext& { return self; })
      .def("__exit__", [](MeterContext& self, const py::args&) { self.end(); })
      .def(
          "start",
          [](MeterContext& self) { with_energy_errors([&] { without_lock([&] { self.meter->start(); }); }); })
      .def("peek", [](MeterContext& self) {
        return with_energy_errors([&] { return without_lock([&] { return self.meter->peek(); }); });
      });
  module.def(
      "measure_energy_window",
      [](const std::string& source, const std::function<void()>& start, const std::function<Span()>& peek,
         double seconds, double longest_s, double max_uncertainty, const std::function<void()>& work,
         const std::function<double()>& clock) {
        const energy::WindowLimits limits{seconds, longest_s, max_uncertainty};
        const energy::Window window = with_energy_errors(
            [&] { return energy::measure_window({source, start, peek}, limits, work, clock); });
        return std::pair(window.span, window.calls);
      },
      py::kw_only(), py::arg("source"), py::arg("start"), py::arg("peek"), py::arg("seconds"),
      py::arg("longest_s"), py::arg("max_uncertainty"), py::arg("work"), py::arg("clock"),
      "A span of energy, and how often the work was done in it.");
  module.def("discover_energy", &discover, py::arg("root") = "/",
             "(kind, sources, why there are none) of every kind of source below a root.");
}

}  // namespace phonebit::engine::python
