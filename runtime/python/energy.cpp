#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "energy/energy_source.h"
#include "energy/energy_trace.h"
#include "gil_release.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

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
      .def("read", &read, "mJ since it was found, or mW, of every rail.");
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
  module.def("discover_energy", &discover, py::arg("root") = "/",
             "(kind, sources, why there are none) of every kind of source below a root.");
}

}  // namespace phonebit::engine::python
