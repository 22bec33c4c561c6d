#include "gpu/layer_set.h"

#include <algorithm>

#include "analysis/border_table.h"
#include "analysis/conv_shape.h"
#include "analysis/op_part.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;

namespace {

/// Taps that a work-item reads in turn, in a launch that nothing ends: some hundredths of a second.
constexpr int64_t kMaxTaps = 1 << 20;

/// Throws Error(device) where a window is more than one work-item should read.
void check_window(const Model& model, size_t index, const DeviceFacts& device) {
  const Op& op = model.ops[index];
  const int64_t taps = int64_t{op.record.kernel_h} * op.record.kernel_w;
  if (!op.traits().has_window() || taps <= kMaxTaps) return;
  fail(ErrorCode::device, "layer '%s': a window of %lld taps, at most %lld can run on %s; use the CPU",
       op.name.c_str(), static_cast<long long>(taps), static_cast<long long>(kMaxTaps), device.name.c_str());
}

}  // namespace

uint64_t max_weight_bytes(const Model& model, const Op& op) {
  const auto count_of = [&](int constant) {
    return constant >= 0 ? static_cast<uint64_t>(model.constant(constant).count) : 0;
  };
  uint64_t elements = count_of(op.record.threshold) + count_of(op.record.flip_mask);
  for (const format::StepRecord& step : op.steps)
    elements += count_of(step.constant_a) + count_of(step.constant_b);
  const bool expands_bits = op.record.weights >= 0 && op.kind == OpKind::kConv2d &&
                            model.operand(op).dtype == DataType::kF32 &&
                            model.constant(op.record.weights).dtype == DataType::kBit;
  // Tiles round the number of filters up, by 31 at most.
  elements += count_of(op.record.weights) * (expands_bits ? 32 : 1) * 2;
  if (op.traits().is_binary()) {
    const analysis::BorderClasses classes = analysis::border_classes(analysis::conv_shape(model, op));
    elements += static_cast<uint64_t>(classes.rows) * static_cast<uint64_t>(classes.columns) * 32 *
                static_cast<uint64_t>(model.output(op).words());
  }
  return 4 * elements;
}

LayerSet::LayerSet(const Model& model, std::shared_ptr<Device> device, ProgramCache& programs,
                   const Options& options, const TensorMemory& memory)
    : model_(model),
      device_(std::move(device)),
      programs_(programs),
      options_(options),
      memory_(memory),
      entries_(model.ops.size()) {}

void LayerSet::prepare(size_t index) {
  if (!entries_[index].is_prepared) choose(index, std::nullopt);
}

void LayerSet::prepare_channel_parts(size_t index) {
  const Op& op = model_.ops[index];
  if (!analysis::can_split_channels(model_, op))
    fail(ErrorCode::internal, "layer '%s' has no parts of channels", op.name.c_str());
  if (!entries_[index].is_prepared || entries_[index].layer.channel_grain == 0) choose(index, 0);
}

void LayerSet::choose(size_t index, std::optional<int> part_channel) {
  check_window(model_, index, device_->facts());
  if (chooser_ == nullptr) chooser_ = std::make_unique<KernelChooser>(device_, programs_, options_);
  chooser_->choose(model_, model_.ops[index], part_channel,
                   [&](const KernelChoice& choice) { set(index, choice, part_channel.has_value()); });
}

void LayerSet::set(size_t index, const KernelChoice& choice, bool has_channel_parts) {
  const Op& op = model_.ops[index];
  const BuildContext build{model_, *device_, programs_, memory_, has_channel_parts};
  Entry entry;
  entry.layer = op_kernels(model_, op).build(build, op, choice);
  entry.layer.channel_grain = has_channel_parts ? channel_grain(choice) : 0;
  entry.choice = choice;
  entry.is_prepared = true;
  entries_[index] = std::move(entry);
}

void LayerSet::bind(size_t index, int batch) {
  bind_pixels(index, 0, static_cast<int>(model_.output(model_.ops[index]).pixels()) * batch, batch);
}

void LayerSet::bind_part(size_t index, const OutputPart& part) {
  const Op& op = model_.ops[index];
  const loader::Tensor& out = model_.output(op);
  const bool has_all_channels = part.channel_begin == 0 && part.channel_end == out.channels;
  if (!has_all_channels) {
    const int grain = entries_[index].layer.channel_grain;
    if (grain == 0)
      fail(ErrorCode::internal, "layer '%s' was not prepared for parts of its channels", op.name.c_str());
    if (part.channel_begin % grain != 0) choose(index, part.channel_begin);
  }
  Range range;
  range.first_pixel = part.row_begin * out.width;
  range.end_pixel = part.row_end * out.width;
  range.first_channel = part.channel_begin;
  range.end_channel = part.channel_end;
  if (entries_[index].layer.image_of >= 0) {
    const OutputPart read = analysis::part_read(model_, op, 0, part);
    range.first_row = static_cast<size_t>(read.row_begin);
    range.end_row = static_cast<size_t>(read.row_end);
  }
  bind_range(index, range, 1);
}

void LayerSet::bind_pixels(size_t index, int first, int end, int batch) {
  Range range;
  range.first_pixel = first;
  range.end_pixel = end;
  range.end_channel = model_.output(model_.ops[index]).channels;
  // The image is filled once, for all parts.
  if (first == 0) range.end_row = entries_[index].layer.image_height * static_cast<size_t>(batch);
  bind_range(index, range, batch);
}

void LayerSet::bind_range(size_t index, const Range& range, int images) {
  Entry& entry = entries_[index];
  if (!entry.is_prepared)
    fail(ErrorCode::internal, "layer '%s' is bound but not prepared", model_.ops[index].name.c_str());
  const auto count = static_cast<size_t>(images);
  reserve_scratch(entry.layer.scratch_bytes * count);
  const size_t rows = entry.layer.image_height * count;
  if (rows > entry.image_rows) {
    entry.image.reset();  // both together may be more than there is
    entry.image = device_->image(entry.layer.image_width, rows, nullptr, "activations");
    entry.image_rows = rows;
  }
  entry.bound = range;
  entry.global.clear();
  for (const Launch& launch : entry.layer.launches)
    entry.global.push_back(
        launch.geometry.global(range.end_pixel - range.first_pixel, range.end_channel - range.first_channel));
  set_arguments(index);
}

void LayerSet::reserve_scratch(size_t bytes) {
  if (bytes <= scratch_capacity_) return;
  scratch_.reset();
  scratch_capacity_ = 0;
  scratch_ = device_->buffer(bytes, nullptr, "scratch memory");
  scratch_capacity_ = bytes;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].layer.scratch_bytes > 0 && !entries_[i].global.empty()) set_arguments(i);
  }
}

void LayerSet::set_arguments(size_t index) {
  const Entry& entry = entries_[index];
  const auto bind = [&](Kernel& kernel, unsigned position, const Argument& argument) {
    switch (argument.kind) {
      case Argument::Kind::tensor:
        return kernel.bind(position, memory_.memory(argument.tensor));
      case Argument::Kind::memory:
        return kernel.bind(position, *argument.memory);
      case Argument::Kind::scratch:
        return kernel.bind(position, *scratch_);
      case Argument::Kind::image:
        return kernel.bind(position, *entry.image);
      case Argument::Kind::first_channel:
        return kernel.bind(position, entry.bound.first_channel);
      case Argument::Kind::end_channel:
        return kernel.bind(position, entry.bound.end_channel);
    }
  };
  try {
    for (const Launch& launch : entry.layer.launches) {
      unsigned position = 0;
      launch.kernel->bind(position++, entry.bound.first_pixel);
      launch.kernel->bind(position++, entry.bound.end_pixel);
      for (const Argument& argument : launch.arguments) bind(*launch.kernel, position++, argument);
    }
  } catch (const Error& error) {
    fail_in_layer(index, error);
  }
}

void LayerSet::fail_in_layer(size_t index, const Error& error) const {
  fail(error.code(), "layer '%s', kernel %s: %s", model_.ops[index].name.c_str(),
       entries_[index].layer.kernel.c_str(), error.what());
}

WorkSize LayerSet::work_size(size_t index, size_t launch) const {
  const Geometry& geometry = entries_[index].layer.launches[launch].geometry;
  return {static_cast<unsigned>(geometry.dimensions()), entries_[index].global[launch].data(),
          geometry.local().data()};
}

void LayerSet::enqueue(size_t index, Queue& queue, Events* events) const {
  const Entry& entry = entries_[index];
  const Layer& layer = entry.layer;
  const Range& bound = entry.bound;
  try {
    if (layer.image_of >= 0 && bound.end_row > bound.first_row)
      queue.copy_to_image(memory_.memory(layer.image_of), *entry.image, layer.image_width, bound.first_row,
                          bound.end_row - bound.first_row, events);
    for (size_t i = 0; i < entry.global.size(); ++i)
      queue.launch(*layer.launches[i].kernel, work_size(index, i), events);
  } catch (const Error& error) {
    fail_in_layer(index, error);
  }
}

bool LayerSet::record(size_t index, Recording& recording) const {
  const Entry& entry = entries_[index];
  bool is_done = entry.layer.image_of < 0;
  for (size_t i = 0; i < entry.global.size() && is_done; ++i)
    is_done = recording.add(*entry.layer.launches[i].kernel, work_size(index, i));
  return is_done;
}

std::vector<DispatchInfo> LayerSet::dispatch(size_t index) const {
  const Entry& entry = entries_[index];
  std::vector<DispatchInfo> result;
  for (size_t i = 0; i < entry.global.size(); ++i) {
    const Launch& launch = entry.layer.launches[i];
    DispatchInfo& info = result.emplace_back();
    info.kernel = launch.name;
    info.choice = entry.layer.kernel;
    std::copy(entry.global[i].begin(), entry.global[i].end(), info.global);
    std::copy(launch.geometry.local().begin(), launch.geometry.local().end(), info.local);
  }
  return result;
}

size_t LayerSet::scratch_bytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes = std::max(bytes, entry.layer.scratch_bytes);
  return bytes;
}

size_t LayerSet::weight_bytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.layer.weight_bytes;
  return bytes;
}

std::vector<std::string> LayerSet::warnings() const {
  return chooser_ != nullptr ? chooser_->warnings() : std::vector<std::string>{};
}

int LayerSet::self_tests_run() const { return chooser_ != nullptr ? chooser_->self_tests_run() : 0; }

}  // namespace phonebit::engine::gpu
