// Comparing times on a disturbed machine, for phonebit/planner, Network.bench and the benchmarks.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "measure/noise_probe.h"
#include "measure/statistics.h"

namespace py = pybind11;

namespace phonebit::engine::python {

using measure::NoiseProbe;
using measure::TimedRuns;

void define_measure(py::module_& module) {
  py::class_<NoiseProbe>(module, "NoiseProbe", "Interleaves measurements with a probe.")
      .def(py::init([](double usual_share, double tolerance, double max_wait_s, double waits_per_measurement,
                       int max_turns, std::function<double()> clock) {
             return NoiseProbe({usual_share, tolerance, max_wait_s, waits_per_measurement, max_turns},
                               std::move(clock));
           }),
           py::kw_only(), py::arg("usual_share"), py::arg("tolerance"), py::arg("max_wait_s"),
           py::arg("waits_per_measurement"), py::arg("max_turns"), py::arg("clock"))
      .def("measure_in_turns", &NoiseProbe::measure_in_turns, py::arg("sides"), py::arg("turn"),
           py::arg("turns"), py::arg("seconds"))
      .def("measure_quietly", &NoiseProbe::measure_quietly, py::arg("sides"), py::arg("probe"),
           py::arg("measure"))
      .def_property_readonly("usual_us", &NoiseProbe::usual_us, "Of the CPU and the GPU.");
  module.def("fixed_loop_ms", &measure::fixed_loop_ms, py::arg("iterations"),
             "Milliseconds of a loop that slows down only if the machine does.");
  module.def(
      "time_runs",
      [](int runs, const std::function<void()>& run, const std::function<void()>& tenth_done) {
        const TimedRuns times = measure::time_runs(runs, run, tenth_done);
        return std::pair(times.run_ms, times.loop_ms);
      },
      py::arg("runs"), py::arg("run"), py::arg("tenth_done"),
      "Milliseconds of each run, and of a fixed loop between tenths of them.");
}

}  // namespace phonebit::engine::python
