#include "gpu/layer_parts.h"

#include <cmath>

#include "analysis/border_table.h"
#include "analysis/conv_shape.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

using format::DataType;
using format::OpKind;
using format::StepRecord;
using format::ThresholdKind;
using loader::Model;
using loader::Op;
using loader::Tensor;
using ops::StepForm;

namespace {

/// Appends a constant of the model; returns its place.
int append(std::vector<float>& constants, const loader::Constant& constant) {
  const auto place = static_cast<int>(constants.size());
  constants.insert(constants.end(), constant.f32(), constant.f32() + constant.count);
  // Vector loads of the last channels may not run over the end of the buffer.
  constants.resize((constants.size() + 3) / 4 * 4, 0.0f);
  return place;
}

std::string step_text(const BuildContext& build, const Op& op, const StepRecord& step, Sink& sink) {
  const Model& model = build.model;
  const Tensor& out = model.output(op);
  const auto place = [&](int constant) { return append(sink.constants, model.constant(constant)); };
  const ops::Step& kind = loader::traits(step);
  switch (kind.form) {
    case StepForm::scale_bias: {
      const int scale = place(step.constant_a), bias = place(step.constant_b);
      return format_text("STEP_SCALE_BIAS(W, %d, %d) ", scale, bias);
    }
    case StepForm::add:
    case StepForm::multiply: {
      const auto index = static_cast<int>(sink.tensors.size());
      sink.tensors.push_back(step.tensor);
      const bool is_pixelwise = model.tensor(step.tensor).pixels() > 1 || out.pixels() == 1;
      return format_text("%s(W, tensor%d, %d, %d) ",
                         kind.form == StepForm::add ? "STEP_ADD" : "STEP_MULTIPLY", index,
                         build.is_half(step.tensor) ? 1 : 0, is_pixelwise ? 1 : 0);
    }
    case StepForm::clamp:
      return "STEP_CLAMP(W, " + float_literal(step.value_a) + ", " + float_literal(step.value_b) + ") ";
    case StepForm::prelu: {
      const bool is_pixelwise =
          out.pixels() > 1 && model.constant(step.constant_a).count == static_cast<uint64_t>(out.elements());
      const int below = place(step.constant_a);
      if (step.constant_b == format::kNone)
        return format_text("STEP_PRELU(W, %d, %d) ", below, is_pixelwise ? 1 : 0);
      return format_text("STEP_TWO_SLOPES(W, %d, %d, %d) ", below, place(step.constant_b),
                         is_pixelwise ? 1 : 0);
    }
    case StepForm::count: {
      const uint64_t rows = model.constant(step.constant_a).count / static_cast<uint64_t>(out.channels);
      return format_text("STEP_COUNT(W, %d, %d) ", place(step.constant_a), static_cast<int>(rows));
    }
    case StepForm::function:
      break;
  }
  return format_text("STEP_FUNCTION(W, %s) ", kind.function);
}

/// `wanted`, halved until the device's work-groups may be that large.
int group_size(const DeviceFacts& device, int wanted) {
  while (wanted > 1 && static_cast<size_t>(wanted) > device.max_work_group_size) wanted /= 2;
  return wanted;
}

/// Registers can make a kernel's groups smaller than the device's; then another choice has to serve.
void check_group_fits(const DeviceFacts& device, const Kernel& kernel, const std::string& name,
                      const Geometry& geometry) {
  const size_t most = kernel.max_group_size();
  const Extent& local = geometry.local();
  const size_t wanted = local[0] * local[1] * local[2];
  if (wanted > most)
    fail(ErrorCode::device,
         "kernel %s: its work-groups of %zu do not fit on %s, which allows %zu for this program",
         name.c_str(), wanted, device.name.c_str(), most);
}

/// A define that has a member of the shape as its value.
struct Dimension {
  const char* name;
  int cpu::ConvShape::* member;
};

constexpr Dimension kMaps[] = {
    {"IN_H", &cpu::ConvShape::in_h},   {"IN_W", &cpu::ConvShape::in_w},   {"IN_C", &cpu::ConvShape::in_c},
    {"OUT_H", &cpu::ConvShape::out_h}, {"OUT_W", &cpu::ConvShape::out_w}, {"OUT_C", &cpu::ConvShape::out_c},
};
constexpr Dimension kWindow[] = {
    {"KERNEL_H", &cpu::ConvShape::kernel_h},     {"KERNEL_W", &cpu::ConvShape::kernel_w},
    {"STRIDE_H", &cpu::ConvShape::stride_h},     {"STRIDE_W", &cpu::ConvShape::stride_w},
    {"DILATION_H", &cpu::ConvShape::dilation_h}, {"DILATION_W", &cpu::ConvShape::dilation_w},
    {"PAD_TOP", &cpu::ConvShape::pad_top},       {"PAD_LEFT", &cpu::ConvShape::pad_left},
};

void set_window(Defines& defines, const cpu::ConvShape& shape, const Op& op) {
  for (const Dimension& dimension : kWindow) defines.set(dimension.name, shape.*dimension.member);
  defines.set("GROUPS", static_cast<int>(op.record.groups));
  defines.set("PADDED", analysis::reaches_padding(shape) ? 1 : 0);
  defines.set("PAD_BITS", shape.pad_value > 0 ? 1 : 0);
  const analysis::BorderClasses classes = analysis::border_classes(shape);
  defines.set("ROW_CLASSES", classes.rows);
  defines.set("COLUMN_CLASSES", classes.columns);
}

}  // namespace

std::string float_literal(float value) {
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return format_text("%af", static_cast<double>(value));
}

Defines geometry_defines(const Model& model, const Op& op) {
  const cpu::ConvShape shape = analysis::conv_shape(model, op);
  Defines defines;
  for (const Dimension& dimension : kMaps) defines.set(dimension.name, shape.*dimension.member);
  defines.set("IN_WORDS", cpu::words(shape.in_c));
  defines.set("OUT_WORDS", cpu::words(shape.out_c));
  // What a file says of a window where there is none was not checked.
  if (op.traits().has_window() || op.traits().is_product()) set_window(defines, shape, op);
  return defines;
}

std::vector<uint16_t> border_numbers(const cpu::ConvShape& shape) {
  const analysis::BorderClasses classes = analysis::border_classes(shape);
  if (classes.rows * classes.columns == 1) return {};
  std::vector<uint16_t> all = classes.row_of;
  all.insert(all.end(), classes.column_of.begin(), classes.column_of.end());
  return all;
}

Sink make_sink(const BuildContext& build, const Op& op) {
  Sink sink;
  sink.values = op.record.value_output;
  sink.bits = op.record.bits_output;
  sink.has_channel_parts = build.has_channel_parts;
  std::string parameters, names;
  std::string bits_parameter = ", __global uint* bits", bits_name = ", bits";
  if (sink.has_channel_parts) {
    bits_parameter += ", __global uchar* bit_bytes";
    bits_name += ", bit_bytes";
    sink.defines.set("CHANNEL_PARTS", 1);
    parameters = ", int first_channel, int end_channel";
    names = ", first_channel, end_channel";
  }
  if (op.threshold_kind() == ThresholdKind::kI32 ||
      !ops::has_type(op.traits().steps, build.model.operand(op).dtype)) {  // bits as they are
    sink.is_threshold = true;
    sink.defines.set("THRESHOLD", 1);
    sink.defines.set("SINK_PARAMS", parameters + bits_parameter);
    sink.defines.set("SINK_ARGS", names + bits_name);
    return sink;
  }
  std::string steps;
  for (const StepRecord& step : op.steps) steps += step_text(build, op, step, sink);
  if (op.record.threshold >= 0) {
    sink.defines.set("HAS_FLOAT_THRESHOLD", 1);
    sink.defines.set("FLOAT_THRESHOLD_AT", append(sink.constants, build.model.constant(op.record.threshold)));
  }
  if (!sink.constants.empty()) {
    parameters += ", __global const float* constants";
    names += ", constants";
  }
  for (size_t i = 0; i < sink.tensors.size(); ++i) {
    parameters += format_text(", __global const void* tensor%zu", i);
    names += format_text(", tensor%zu", i);
  }
  if (sink.values >= 0) {
    parameters += ", __global void* values";
    names += ", values";
    sink.defines.set("HAS_VALUES", 1);
    sink.defines.set("VALUES_HALF", build.is_half(sink.values) ? 1 : 0);
  }
  if (sink.bits >= 0) {
    parameters += bits_parameter;
    names += bits_name;
    sink.defines.set("HAS_BITS", 1);
  }
  sink.defines.set("EPILOGUE", 1);
  sink.defines.set("APPLY_STEPS(W)", steps);
  sink.defines.set("SINK_PARAMS", parameters);
  sink.defines.set("SINK_ARGS", names);
  return sink;
}

LayerBuilder::LayerBuilder(const BuildContext& build, const Op& op, SinkUse use)
    : build_(build),
      shape_(analysis::conv_shape(build.model, op)),
      sink_(use == with_sink ? make_sink(build, op) : Sink{}),
      defines_(geometry_defines(build.model, op)) {
  for (const auto& [name, value] : sink_.defines.all()) defines_.set(name.c_str(), value);
  set_size("CHANNEL_UNIT",
           channel_unit(op.record.bits_output >= 0 && !build.has_channel_parts, shape_.out_c));
}

Argument LayerBuilder::upload(const void* data, size_t bytes, const char* what) {
  layer_.memory.push_back(build_.device.buffer(bytes, data, what));
  layer_.weight_bytes += bytes;
  return Argument::of_memory(layer_.memory.back().get());
}

Argument LayerBuilder::upload_image(const void* data, size_t width, size_t height) {
  layer_.memory.push_back(build_.device.image(width, height, data, "weights"));
  layer_.weight_bytes += 16 * width * height;
  return Argument::of_memory(layer_.memory.back().get());
}

Argument LayerBuilder::upload_borders(const cpu::ConvShape& shape) {
  const std::vector<uint16_t> numbers = border_numbers(shape);
  return numbers.empty() ? dummy() : upload(numbers, "border classes");
}

Argument LayerBuilder::dummy() {
  const uint32_t nothing = 0;
  return upload(&nothing, sizeof nothing, "a placeholder");
}

void LayerBuilder::append_sink(std::vector<Argument>& arguments) {
  if (sink_.has_channel_parts) {
    arguments.push_back(Argument::first_channel());
    arguments.push_back(Argument::end_channel());
  }
  if (!sink_.constants.empty()) arguments.push_back(upload(sink_.constants, "constants of an epilogue"));
  for (const int tensor : sink_.tensors) arguments.push_back(Argument::of_tensor(tensor));
  if (sink_.values >= 0) arguments.push_back(Argument::of_tensor(sink_.values));
  if (sink_.bits < 0) return;
  arguments.push_back(Argument::of_tensor(sink_.bits));
  if (sink_.has_channel_parts) arguments.push_back(Argument::of_tensor(sink_.bits));  // by bytes
}

void LayerBuilder::launch(const std::string& kernel, const KernelChoice& choice,
                          std::vector<Argument> arguments) {
  Defines defines = defines_;
  // Written out, tunables count as variables of the kernel's @geometry.
  for (const Tunable& tunable : tunables(kernel)) {
    int value = kernel == choice.kernel ? choice.parameter(tunable.name.c_str()) : tunable.default_value;
    if (tunable.name == "GROUP_SIZE") value = group_size(build_.device.facts(), value);
    if (defines.find(tunable.name) == nullptr) defines.set(tunable.name.c_str(), value);
  }
  const std::string text = assemble(kernel, defines);
  for (const auto& [name, value] : sizes_.all()) defines.set(name.c_str(), value);
  Geometry geometry = Geometry::of_program(kernel, text, defines);
  std::unique_ptr<Kernel> built = build_.programs.kernel(kernel, text);
  check_group_fits(build_.device.facts(), *built, kernel, geometry);
  layer_.launches.push_back(
      {kernel, build_.programs.kept(text), std::move(built), std::move(arguments), std::move(geometry)});
}

void LayerBuilder::set_image(int tensor, size_t width, size_t height) {
  layer_.image_of = tensor;
  layer_.image_width = width;
  layer_.image_height = height;
}

Layer LayerBuilder::finish(std::string name) {
  layer_.kernel = std::move(name);
  return std::move(layer_);
}

}  // namespace phonebit::engine::gpu
