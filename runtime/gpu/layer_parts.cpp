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

/// `tensors`: that steps read.
std::string step_text(const BuildContext& build, const Op& op, const StepRecord& step, Sink& sink,
                      std::vector<int>& tensors) {
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
      const auto index = static_cast<int>(tensors.size());
      tensors.push_back(step.tensor);
      const bool is_pixelwise = model.tensor(step.tensor).pixels() > 1 || out.pixels() == 1;
      return format_text("%s(W, tensor%d, %d, %d) ",
                         kind.form == StepForm::add ? "STEP_ADD" : "STEP_MULTIPLY", index,
                         build.memory.is_half(step.tensor) ? 1 : 0, is_pixelwise ? 1 : 0);
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

/// Registers can make a kernel's groups smaller than the device's; then another choice is used.
void check_group_fits(const DeviceFacts& device, const Kernel& kernel, const std::string& name,
                      const Geometry& geometry) {
  const size_t allowed = kernel.max_group_size();
  const Extent& local = geometry.local();
  const size_t wanted = local[0] * local[1] * local[2];
  if (wanted > allowed)
    fail(ErrorCode::device,
         "kernel %s: its work-groups of %zu do not fit on %s, which allows %zu for this program",
         name.c_str(), wanted, device.name.c_str(), allowed);
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

/// The arguments of every epilogue in a module; for those that the layer has not, its constants are bound.
std::vector<Argument> module_arguments(const std::vector<int>& tensors, int values, int bits) {
  constexpr size_t kTensors = 4;
  if (tensors.size() > kTensors)
    throw BuildError(ErrorCode::device, format_text("an epilogue reads %zu tensors, and modules have %zu",
                                                    tensors.size(), kTensors));
  std::vector<Argument> arguments(3 + kTensors, Argument::of_memory(nullptr));
  for (size_t i = 0; i < tensors.size(); ++i) arguments[1 + i] = Argument::of_tensor(tensors[i]);
  if (values >= 0) arguments[1 + kTensors] = Argument::of_tensor(values);
  if (bits >= 0) arguments[2 + kTensors] = Argument::of_tensor(bits);
  return arguments;
}

void set_window(Defines& defines, const cpu::ConvShape& shape, const Op& op) {
  for (const Dimension& dimension : kWindow) defines.set(dimension.name, shape.*dimension.member);
  defines.set("GROUPS", static_cast<int>(op.record.groups));
  defines.set("PADDED", analysis::reaches_padding(shape));
  defines.set("PAD_BITS", shape.pad_value > 0);
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
  const int values = op.record.value_output, bits = op.record.bits_output;
  std::string parameters, names;
  const auto add = [&](const char* type, const std::string& name, const Argument& argument) {
    parameters += std::string(", ") + type + " " + name;
    names += ", " + name;
    sink.arguments.push_back(argument);
  };
  const auto add_bits = [&] {
    add("__global uint*", "bits", Argument::of_tensor(bits));
    if (build.has_channel_parts) add("__global uchar*", "bit_bytes", Argument::of_tensor(bits));
  };
  if (build.has_channel_parts) {
    if (build.device.facts().takes_modules)
      throw BuildError(ErrorCode::device, "modules compute no parts of channels; cut the layer by rows");
    sink.defines.set("CHANNEL_PARTS", 1);
    add("int", "first_channel", Argument::first_channel());
    add("int", "end_channel", Argument::end_channel());
  }
  sink.is_threshold = op.threshold_kind() == ThresholdKind::kI32 ||
                      !ops::has_type(op.traits().steps, build.model.operand(op).dtype);  // bits as they are
  if (sink.is_threshold) {
    sink.defines.set("THRESHOLD", 1);
    add_bits();
  } else {
    std::string steps;
    std::vector<int> tensors;
    for (const StepRecord& step : op.steps) steps += step_text(build, op, step, sink, tensors);
    if (op.record.threshold >= 0) {
      sink.defines.set("HAS_FLOAT_THRESHOLD", 1);
      sink.defines.set("FLOAT_THRESHOLD_AT",
                       append(sink.constants, build.model.constant(op.record.threshold)));
    }
    if (!sink.constants.empty()) add("__global const float*", "constants", Argument::of_memory(nullptr));
    for (size_t i = 0; i < tensors.size(); ++i)
      add("__global const void*", format_text("tensor%zu", i), Argument::of_tensor(tensors[i]));
    if (values >= 0) {
      add("__global void*", "values", Argument::of_tensor(values));
      sink.defines.set("HAS_VALUES", 1);
      sink.defines.set("VALUES_HALF", build.memory.is_half(values));
    }
    if (bits >= 0) {
      add_bits();
      sink.defines.set("HAS_BITS", 1);
    }
    sink.defines.set("EPILOGUE", 1);
    if (build.device.facts().takes_modules) sink.arguments = module_arguments(tensors, values, bits);
    sink.defines.set("APPLY_STEPS(W)", steps);
  }
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
  Argument constants{Argument::Kind::memory};
  for (const Argument& argument : sink_.arguments) {
    const bool is_tensor = argument.kind != Argument::Kind::memory;
    if (!is_tensor && constants.memory == nullptr)
      constants = upload(sink_.constants, "constants of an epilogue");
    arguments.push_back(is_tensor ? argument : constants);
  }
}

void LayerBuilder::launch(const std::string& kernel, std::vector<Argument> arguments,
                          const KernelChoice& choice) {
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

Layer LayerBuilder::finish(const KernelChoice& choice) {
  layer_.kernel = choice.text();
  return std::move(layer_);
}

Layer LayerBuilder::finish_with_sink(const KernelChoice& choice, std::vector<Argument> arguments) {
  append_sink(arguments);
  launch(choice.kernel, std::move(arguments), choice);
  return finish(choice);
}

}  // namespace phonebit::engine::gpu
