#include "opencl/executor.h"

#include <algorithm>
#include <climits>

#include "fail.h"
#include "format/half.h"
#include "lowering/border_table.h"
#include "lowering/conv_shape.h"
#include "opencl/cl_functions.h"

namespace phonebit::opencl {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;
using loader::Tensor;

Executor::Executor(const Model& model, Context& context, ProgramCache& programs, Precision precision,
                   uint64_t max_memory_bytes)
    : model_(model),
      context_(context),
      programs_(programs),
      precision_(precision),
      max_memory_bytes_(max_memory_bytes),
      budget_(max_memory_bytes),
      storage_(model, context, precision),
      layers_(model.ops.size()),
      images_(model.ops.size()) {
  budget_.take(storage_.arena_bytes(1), "activations");
  for (const Op& op : model.ops) charge(op);
}

/// Weights and tables that the op will need at most, before any of it is allocated.
void Executor::charge(const Op& op) {
  const auto count_of = [&](int constant) {
    return constant >= 0 ? static_cast<uint64_t>(model_.constant(constant).count) : 0;
  };
  uint64_t elements = count_of(op.record.threshold) + count_of(op.record.flip_mask);
  for (const format::StepRecord& step : op.steps)
    elements += count_of(step.constant_a) + count_of(step.constant_b);
  const bool expands_bits = op.record.weights >= 0 && op.kind == OpKind::kConv2d &&
                            model_.operand(op).dtype == DataType::kF32 &&
                            model_.constant(op.record.weights).dtype == DataType::kBit;
  // Tiles round the number of filters up, by 31 at most.
  elements += count_of(op.record.weights) * (expands_bits ? 32 : 1) * 2;
  if (op.kind == OpKind::kBinaryConv2d || op.kind == OpKind::kBinaryDepthwiseConv2d) {
    const lowering::BorderClasses classes = lowering::border_classes(lowering::conv_shape(model_, op));
    elements += static_cast<uint64_t>(classes.rows) * static_cast<uint64_t>(classes.columns) * 32 *
                static_cast<uint64_t>(model_.output(op).words());
  }
  budget_.take(4 * elements, "weights");
}

void Executor::set_layer(size_t index, const KernelChoice& choice) {
  const Op& op = model_.ops[index];
  const BuildContext build{model_, context_, programs_,
                           [this](int tensor) { return storage_.is_half(tensor); },
                           [this](int a, int b) { return storage_.is_shared(a, b); }};
  layers_[index] = op_kernels(model_, op).build(build, op, choice);
  images_[index] = Handle<cl_mem>();
  scratch_capacity_ = 0;
  batch_ = 0;
  is_bound_ = false;
}

size_t Executor::scratch_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes = std::max(bytes, layer.scratch_bytes);
  return bytes;
}

size_t Executor::weight_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.weight_bytes;
  return bytes;
}

int Executor::largest_batch() const {
  const uint64_t limit = context_.device().max_buffer_bytes;
  uint64_t batch = INT_MAX;
  const auto allow = [&](uint64_t most, uint64_t of_one_image) {
    if (of_one_image > 0) batch = std::min(batch, most / of_one_image);
  };
  allow(limit, storage_.largest_buffer_bytes());
  // A large batch must not take the whole device: beyond some images a pass gains nothing anyway.
  uint64_t of_one_image = storage_.arena_bytes(1) + scratch_bytes();
  for (const int tensor : model_.inputs) of_one_image += storage_.image_bytes(tensor);
  for (const int tensor : model_.outputs) of_one_image += storage_.image_bytes(tensor);
  allow(max_memory_bytes_, of_one_image);
  allow(limit, scratch_bytes());
  for (const Tensor& tensor : model_.tensors) {
    allow(limit, tensor.bytes());
    allow(INT_MAX, static_cast<uint64_t>(tensor.elements()));  // kernels count elements in int
  }
  for (const Layer& layer : layers_) {
    allow(context_.device().image2d_max_height, layer.image_height);
    allow(INT_MAX, layer.scratch_bytes);
  }
  return static_cast<int>(std::max<uint64_t>(batch, 1));
}

void Executor::prepare(int batch) {
  if (batch == batch_ && is_bound_) return;
  const bool has_moved = storage_.reserve(batch);
  const auto images = static_cast<size_t>(storage_.capacity());
  if (scratch_bytes() > 0 && scratch_capacity_ < scratch_bytes() * images) {
    scratch_ = Handle<cl_mem>();
    scratch_ = context_.buffer(scratch_bytes() * images, nullptr, "scratch memory");
    scratch_capacity_ = scratch_bytes() * images;
    is_bound_ = false;
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (layer.image_of < 0 || (images_[i] && !has_moved)) continue;
    images_[i] = Handle<cl_mem>();
    images_[i] = context_.image(layer.image_width, layer.image_height * images, nullptr, "activations");
    is_bound_ = false;
  }
  batch_ = batch;
  if (has_moved) is_bound_ = false;
  recorded_batch_ = 0;
  bind_arguments();
}

void Executor::bind_terminals(std::vector<cl_mem> inputs, std::vector<cl_mem> outputs) {
  storage_.bind_terminals(std::move(inputs), std::move(outputs));
  bind_arguments();
}

void Executor::bind_arguments() {
  for (Layer& layer : layers_) bind_layer(layer);
  is_bound_ = true;
}

void Executor::bind_layer(Layer& layer) {
  const auto index = static_cast<size_t>(&layer - layers_.data());
  const auto set = [&](cl_kernel kernel, cl_uint position, size_t bytes, const void* value) {
    const cl_int status = api().clSetKernelArg(kernel, position, bytes, value);
    if (status != 0)
      check(status, "clSetKernelArg",
            format_text("%s, argument %u of %s", layer.kernel.c_str(), position,
                        model_.ops[index].name.c_str()));
  };
  for (Launch& launch : layer.launches) {
    const cl_int batch = batch_;
    set(launch.kernel.get(), 0, sizeof batch, &batch);
    cl_uint position = 1;
    for (const Argument& argument : launch.arguments) {
      cl_mem memory = argument.memory;
      if (argument.kind == Argument::Kind::tensor) memory = storage_.memory(argument.tensor);
      if (argument.kind == Argument::Kind::scratch) memory = scratch_.get();
      if (argument.kind == Argument::Kind::image) memory = images_[index].get();
      set(launch.kernel.get(), position++, sizeof memory, &memory);
    }
  }
}

void Executor::enqueue_layer(size_t index, cl_command_queue queue, std::vector<Handle<cl_event>>* events) {
  const Layer& layer = layers_[index];
  const auto new_event = [&]() -> cl_event* {
    if (events == nullptr) return nullptr;
    events->emplace_back();
    return events->back().out();
  };
  if (layer.image_of >= 0) {
    const size_t origin[3] = {0, 0, 0};
    const size_t region[3] = {layer.image_width, layer.image_height * static_cast<size_t>(batch_), 1};
    check(api().clEnqueueCopyBufferToImage(queue, storage_.memory(layer.image_of), images_[index].get(), 0,
                                           origin, region, 0, nullptr, new_event()),
          "clEnqueueCopyBufferToImage", model_.ops[index].name);
  }
  for (const Launch& launch : layer.launches) {
    const Extent global = launch.geometry.global(batch_);
    const cl_int status = api().clEnqueueNDRangeKernel(
        queue, launch.kernel.get(), static_cast<cl_uint>(launch.geometry.dimensions()), nullptr,
        global.data(), launch.geometry.local().data(), 0, nullptr, new_event());
    if (status != 0)
      check(status, "clEnqueueNDRangeKernel",
            format_text("layer %s, kernel %s, global (%zu, %zu, %zu)", model_.ops[index].name.c_str(),
                        layer.kernel.c_str(), global[0], global[1], global[2]));
  }
}

void Executor::enqueue(bool can_replay) {
  if (can_replay && record()) {
    const CommandBufferApi* const buffers = command_buffer_api(context_.device().platform);
    check(buffers->enqueue(recording_.get()), "clEnqueueCommandBufferKHR");
    return;
  }
  for (size_t i = 0; i < layers_.size(); ++i) enqueue_layer(i, context_.queue(), nullptr);
}

/// Records the layers for the current batch, once. False where that is not possible: no extension, a driver
/// that refuses, or commands that it cannot hold.
bool Executor::record() {
  if (recorded_batch_ == batch_) return true;
  if (recorded_batch_ < 0 || !context_.device().has_command_buffer) return false;
  const CommandBufferApi* const buffers = command_buffer_api(context_.device().platform);
  const bool has_images =
      std::any_of(layers_.begin(), layers_.end(), [](const Layer& l) { return l.image_of >= 0; });
  recorded_batch_ = -1;
  if (buffers == nullptr || has_images) return false;
  recording_ = Handle<cl_command_buffer>();
  cl_int status = 0;
  recording_ = Handle<cl_command_buffer>(buffers->create(context_.queue(), &status));
  if (status != 0) return false;
  for (const Layer& layer : layers_) {
    for (const Launch& launch : layer.launches) {
      const Extent global = launch.geometry.global(batch_);
      status = buffers->kernel(recording_.get(), launch.kernel.get(),
                               static_cast<cl_uint>(launch.geometry.dimensions()), nullptr, global.data(),
                               launch.geometry.local().data());
      if (status != 0) return false;
    }
  }
  if (buffers->finalize(recording_.get()) != 0) return false;
  recorded_batch_ = batch_;
  return true;
}

void Executor::write(int tensor, const void* data, int images, bool must_wait) {
  const size_t bytes = storage_.image_bytes(tensor) * static_cast<size_t>(images);
  std::vector<uint16_t> halves;
  if (storage_.is_half(tensor)) {
    halves = format::to_halves(static_cast<const float*>(data), bytes / sizeof(uint16_t));
    data = halves.data();
    must_wait = true;
  }
  check(api().clEnqueueWriteBuffer(context_.queue(), storage_.memory(tensor), must_wait ? 1 : 0, 0, bytes,
                                   data, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer", model_.tensor(tensor).name);
}

void Executor::read(int tensor, void* data, int images, bool must_wait) {
  const size_t bytes = storage_.image_bytes(tensor) * static_cast<size_t>(images);
  const bool is_half = storage_.is_half(tensor);
  std::vector<uint16_t> halves(is_half ? bytes / sizeof(uint16_t) : 0);
  check(api().clEnqueueReadBuffer(context_.queue(), storage_.memory(tensor), must_wait || is_half ? 1 : 0, 0,
                                  bytes, is_half ? halves.data() : data, 0, nullptr, nullptr),
        "clEnqueueReadBuffer", model_.tensor(tensor).name);
  if (is_half) format::from_halves(halves.data(), halves.size(), static_cast<float*>(data));
}

void Executor::finish() { check(api().clFinish(context_.queue()), "clFinish", context_.device().name); }

}  // namespace phonebit::opencl
