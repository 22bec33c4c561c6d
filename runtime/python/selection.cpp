#include <pybind11/stl.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "gpu/kernel_selection.h"
#include "ops/operators.h"
#include "select.h"
#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

using gpu::KernelChoice;
using gpu::KernelFamily;

int number(const py::object& layer, const char* name) { return layer.attr(name).cast<int>(); }

/// Of a phonebit.planner LayerShape.
cpu::ConvShape shape_of(const py::object& layer) {
  cpu::ConvShape shape{};
  shape.in_h = number(layer, "in_h");
  shape.in_w = number(layer, "in_w");
  shape.in_c = number(layer, "in_c");
  shape.out_h = number(layer, "out_h");
  shape.out_w = number(layer, "out_w");
  shape.out_c = number(layer, "out_c");
  shape.kernel_h = number(layer, "kernel_h");
  shape.kernel_w = number(layer, "kernel_w");
  shape.stride_h = number(layer, "stride_h");
  shape.stride_w = number(layer, "stride_w");
  shape.dilation_h = number(layer, "dilation_h");
  shape.dilation_w = number(layer, "dilation_w");
  shape.pad_top = number(layer, "pad_top");
  shape.pad_left = number(layer, "pad_left");
  return shape;
}

gpu::LayerFacts facts_of(const py::object& layer) {
  gpu::LayerFacts facts{shape_of(layer), number(layer, "groups"), layer.attr("bits").cast<bool>(),
                        layer.attr("thresholds").cast<bool>(),
                        layer.attr("operand_channels").cast<std::vector<int>>()};
  const int weight_bits = number(layer, "weight_bits");
  facts.has_small_weights = weight_bits == 8 || weight_bits == 16;
  return facts;
}

std::vector<std::string> isa_names() {
  std::vector<std::string> result;
  for (const cpu::IsaRow* isa = cpu::kIsas; isa->name != nullptr; ++isa) result.emplace_back(isa->name);
  return result;
}

/// (name, pixel tile, operations of a window) of the kernel for a part of a binary convolution.
std::tuple<std::string, int, int64_t> cpu_kernel(const std::string& isa, int threads, bool is_64_bit,
                                                 const py::object& layer, int rows, int channels) {
  cpu::ConvShape shape = shape_of(layer);
  shape.out_h = rows;
  shape.out_c = channels;
  const cpu::IsaRow* of = cpu::kIsas;
  while (of->name != nullptr && isa != of->name) ++of;
  if (of->name == nullptr) fail(ErrorCode::input, "unknown instruction set '%s'", isa.c_str());
  const cpu::BinaryConvRow& row = cpu::choose_binary_conv(of->binary_conv, shape, {threads, is_64_bit});
  return {row.name, row.pixel_tile, cpu::window_operations(shape, row)};
}

const char* name_of(ops::Rows rows) {
  switch (rows) {
    case ops::Rows::window:
      return "window";
    case ops::Rows::same:
      return "same";
    case ops::Rows::padded:
      return "padded";
    case ops::Rows::all:
      break;
  }
  return "all";
}

const char* name_of(ops::Channels channels) { return channels == ops::Channels::same ? "same" : "all"; }

const char* name_of(ops::Cuts cuts) {
  switch (cuts) {
    case ops::Cuts::none:
      return "none";
    case ops::Cuts::rows:
      return "rows";
    case ops::Cuts::rows_and_channels:
      break;
  }
  return "rows_and_channels";
}

std::vector<std::tuple<uint32_t, std::string, std::string, std::string>> operators() {
  std::vector<std::tuple<uint32_t, std::string, std::string, std::string>> result;
  for (const ops::Operator& op : ops::kOperators)
    result.emplace_back(static_cast<uint32_t>(op.kind), name_of(op.rows), name_of(op.channels),
                        name_of(op.cuts));
  return result;
}

std::vector<std::pair<std::string, std::vector<std::string>>> gpu_kernel_families() {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const KernelFamily* const* family = gpu::kKernelFamilies; *family != nullptr; ++family)
    result.push_back({(*family)->op, {(*family)->kernels.begin(), (*family)->kernels.end()}});
  return result;
}

const KernelFamily& family_of(const py::object& layer) {
  const auto name = layer.attr("family").cast<std::string>();
  for (const KernelFamily* const* family = gpu::kKernelFamilies; *family != nullptr; ++family) {
    if (name == (*family)->op) return **family;
  }
  fail(ErrorCode::input, "there are no kernels for '%s'", name.c_str());
}

/// The kernels of a GPU that need not be here. What only its driver knows (cl_khr_fp16, sizes of images, registers
/// of compiled kernels) counts as met.
class GpuKernels {
 public:
  GpuKernels(const std::string& name, const std::string& vendor, const std::string& family,
             uint64_t local_bytes, bool has_images, const std::string& tuning)
      : table_(gpu::TuningTable::parse(tuning, "tuning lines")) {
    device_.name = name;
    device_.vendor = vendor;
    device_.family = family;
    device_.local_bytes = local_bytes;
    device_.has_images = has_images;
    device_.has_half = true;
    device_.image2d_max_width = device_.image2d_max_height = std::numeric_limits<size_t>::max();
  }

  /// The lines of the table that fit the device.
  std::vector<std::string> tuning_lines() const { return table_.lines(device_); }

  /// What can run a layer, best first, and where its parts of channels may begin: at multiples; 0: nowhere.
  std::vector<std::pair<std::string, int>> candidates(const py::object& layer, bool is_exact) const {
    std::vector<std::pair<std::string, int>> result;
    for (const KernelChoice& choice :
         gpu::supported_choices(family_of(layer), facts_of(layer), {device_, is_exact}, table_))
      result.emplace_back(choice.text(), gpu::channel_grain(choice));
    return result;
  }

  /// (kernel, global size, local size) of each launch.
  std::vector<std::tuple<std::string, gpu::Extent, gpu::Extent>> launches(const py::object& layer,
                                                                          const std::string& choice,
                                                                          int pixels, int channels) const {
    std::vector<std::tuple<std::string, gpu::Extent, gpu::Extent>> result;
    for (gpu::PlannedLaunch& launch : gpu::planned_launches(family_of(layer), facts_of(layer),
                                                            KernelChoice::parse(choice), pixels, channels))
      result.emplace_back(std::move(launch.kernel), launch.global, launch.local);
    return result;
  }

 private:
  gpu::DeviceFacts device_{};
  gpu::TuningTable table_;
};

}  // namespace

void define_selection(py::module_& module) {
  module.attr("CHANNEL_BLOCK") = cpu::kChannelBlock;
  module.def("isa_names", &isa_names, "Instruction sets of all builds, those for other processors too.");
  module.def("cpu_kernel", &cpu_kernel, py::arg("isa"), py::arg("threads"), py::arg("is_64_bit"),
             py::arg("layer"), py::arg("rows"), py::arg("channels"),
             "(name, pixels of a tile, operations of a window) of a binary convolution's kernel.");
  module.def(
      "operators", &operators,
      "(number, rows that it reads: window, same, padded or all; channels: same or all; cuts: none, rows or "
      "rows_and_channels).");
  module.def("gpu_kernel_families", &gpu_kernel_families, "(family, kernels) of each kind of op.");
  module.def(
      "built_in_tuning_table", [] { return std::string(gpu::built_in_tuning_table()); },
      "The table that comes with the kernels.");
  py::class_<GpuKernels>(module, "GpuKernels", "Which kernels a GPU supports that need not be here.")
      .def(py::init<const std::string&, const std::string&, const std::string&, uint64_t, bool,
                    const std::string&>(),
           py::arg("name"), py::arg("vendor"), py::arg("family"), py::arg("local_bytes"),
           py::arg("has_images"), py::arg("tuning"))
      .def("tuning_lines", &GpuKernels::tuning_lines, "The lines of the table that fit the device.")
      .def("candidates", &GpuKernels::candidates, py::arg("layer"), py::arg("is_exact") = true,
           "(choice, grain of its parts of channels), best first.")
      .def("launches", &GpuKernels::launches, py::arg("layer"), py::arg("choice"), py::arg("pixels"),
           py::arg("channels"), "(kernel, global size, local size) of each launch.");
}

}  // namespace phonebit::engine::python
