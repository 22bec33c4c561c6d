#include "descriptions.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <iterator>
#include <vector>

#include "bindings.h"
#include "options.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

const char* tensor_dtype(const TensorInfo& tensor) {
  return tensor.dtype == ElementType::bit ? "bit" : tensor.dtype == ElementType::u8 ? "u8" : "f32";
}

}  // namespace

void define_records(py::module_& module) {
  py::class_<TensorInfo>(module, "TensorInfo",
                         "An input or output: name, dtype (bit, u8, f32), shape (h, w, c).")
      .def_readonly("name", &TensorInfo::name)
      .def_property_readonly("dtype", &tensor_dtype)
      .def_property_readonly("shape", [](const TensorInfo& tensor) {
        return py::make_tuple(tensor.height, tensor.width, tensor.channels);
      });
  py::class_<LayerInfo>(module, "LayerInfo", "One op of the file and the kernel that runs it.")
      .def_readonly("name", &LayerInfo::name)
      .def_readonly("kind", &LayerInfo::kind)
      .def_readonly("kernel", &LayerInfo::kernel)
      .def_readonly("macs", &LayerInfo::macs)
      .def_readonly("binary", &LayerInfo::binary)
      .def_readonly("weight_bytes", &LayerInfo::weight_bytes)
      .def_readonly("inputs", &LayerInfo::inputs)
      .def_readonly("outputs", &LayerInfo::outputs);
}

py::dict coexec(const Network& network) {
  const CoexecInfo info = network.coexec();
  py::dict result;
  result["sharing"] = name_of(info.sharing);
  result["synchronization"] = name_of(info.synchronization);
  result["is_on_cpu_alone"] = info.is_on_cpu_alone;
  result["is_on_gpu_alone"] = info.is_on_gpu_alone;
  result["is_on_trial"] = info.is_on_trial;
  result["plan_ms"] = info.plan_ms;
  result["cpu_ms"] = info.cpu_ms;
  result["gpu_ms"] = info.gpu_ms;
  return result;
}

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

}  // namespace phonebit::engine::python
