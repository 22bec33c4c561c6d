#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "engine/devices.h"
#include "engine/gpu_apis.h"
#include "gil_release.h"
#include "gpu/program_cache.h"
#include "options.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

/// The first time, people are told why they wait.
void before_compiling() {
  const py::gil_scoped_acquire locked;
  py::module_::import("phonebit.devices.first_use").attr("announce")();
}

std::vector<std::tuple<std::string, std::string, bool, std::string>> self_test(
    const py::object& device, const std::string& cache_directory, bool again) {
  py::dict keywords;
  keywords["device"] = device;
  keywords["cache_directory"] = cache_directory;
  const Options options = options_of(keywords);
  const GilRelease unlocked;
  std::vector<std::tuple<std::string, std::string, bool, std::string>> results;
  for (SelfTestResult& result : gpu_self_test(options, again))
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

}  // namespace

void define_gpus(py::module_& module) {
  using Info = GpuInfo;
  py::class_<Info>(module, "GpuDevice", "A GPU, or what its API offers as a device, and what it can do.")
      .def_readonly("api", &Info::api)
      .def_readonly("index", &Info::index)
      .def_readonly("name", &Info::name)
      .def_readonly("platform", &Info::platform_name)
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
  py::class_<GpuHandles>(module, "GpuHandles", "Objects of a GPU's API, the caller's, as numbers.")
      .def(py::init([](uintptr_t context, uintptr_t device, uintptr_t queue) {
             return GpuHandles{pointer(context), pointer(device), pointer(queue)};
           }),
           py::arg("context"), py::arg("device"), py::arg("queue") = 0);
  module.def("use_opencl_library", &use_opencl_library, py::arg("path"));
  module.def(
      "gpu_apis",
      [] {
        std::vector<std::string> names;
        for (const GpuApi& api : gpu_apis()) names.emplace_back(api.name);
        return names;
      },
      "Those of this build, in the order in which a GPU is looked for.");
  module.def("gpu_devices", &gpu_devices, py::arg("api"), "GPUs first, then what else their API offers.");
  module.def("gpu_error", &gpu_error, py::arg("api"), "Why there is no GPU, or an empty text.");
  gpu::set_compile_hook(&before_compiling);
  module.def("gpu_self_test", &self_test, py::arg("device"), py::arg("cache_directory") = "",
             py::arg("again") = false, "(op, choice, passed, detail) of every kernel variant.");
}

}  // namespace phonebit::engine::python
