// Inferences on arrays of the host. Inputs go through staging memory to the device, levels of images
// as bytes; outputs come back in the same way. Inferences that are begun have memory and queues of their own for
// that, so that one is copied while another computes.
#include <algorithm>
#include <limits>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "backend/input_values.h"
#include "gpu/gpu_backend.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

/// A batch of twice as many images and more runs in pieces, each of which is copied while others compute. An
/// H100 computes fewer images of a residual network faster than the host enqueues its layers.
constexpr int kMinPieceImages = 64, kMaxPieces = 4;
/// Bytes of inputs that are worth a launch of the first layer of their own.
constexpr size_t kMinPieceBytes = size_t{2} << 20;

size_t bytes_of_image(const loader::Tensor& tensor, const InputBuffer& input) {
  return input.is_levels ? static_cast<size_t>(tensor.elements()) : tensor.bytes();
}

Options without_limits(const std::string& cache_directory) {
  Options options;
  options.max_memory_bytes = std::numeric_limits<uint64_t>::max();  // checked at load
  options.cache_directory = cache_directory;
  return options;
}

}  // namespace

GpuBackend::Levels::Levels(const loader::Tensor& input, const Preprocessing& rule,
                           std::shared_ptr<Device> device, ProgramCache& programs,
                           const std::string& cache_directory)
    : level_model(input, rule),
      executor(level_model.model(), std::move(device), programs, without_limits(cache_directory)) {
  executor.prepare_layer(0);
}

/// An inference whose outputs are on their way.
class GpuBackend::BegunInference final : public Inference {
 public:
  BegunInference(GpuBackend& backend, std::unique_ptr<Lane> lane, const std::vector<OutputBuffer>& outputs)
      : backend_(backend), lane_(std::move(lane)), outputs_(outputs) {
    ++backend_.begun_;
  }
  ~BegunInference() override { --backend_.begun_; }

  void finish(const Cancellation& cancellation) override {
    for (size_t i = 0; i < outputs_.size(); ++i)
      lane_->outputs[i].staging.take(static_cast<std::byte*>(outputs_[i].data), *backend_.pool_);
    backend_.free_lanes_.push_back(std::move(lane_));
    cancellation.check();
  }

  Lane& lane() { return *lane_; }

 private:
  GpuBackend& backend_;
  std::unique_ptr<Lane> lane_;
  std::vector<OutputBuffer> outputs_;
};

void GpuBackend::prepare(int batch) {
  if (begun_ > 0 && batch != executor_.batch()) device_->queue().finish();
  executor_.prepare(batch);
}

template <class Body>
void GpuBackend::in_batches(int batch, const Cancellation& cancellation, const Body& body) {
  const int max_images = executor_.largest_batch();
  for (int first = 0; first < batch; first += max_images) {
    cancellation.check();
    const int images = std::min(max_images, batch - first);
    prepare(images);
    guarded([&] { body(first, images); });
  }
}

template <class Body>
void GpuBackend::guarded(const Body& body) {
  try {
    body();
  } catch (...) {
    for (Queue* const queue : {upload_queue_.get(), &device_->queue(), download_queue_.get()})
      if (queue != nullptr) queue->drain();
    throw;
  }
}

std::unique_ptr<GpuBackend::Lane> GpuBackend::free_lane() {
  if (!free_lanes_.empty()) {
    std::unique_ptr<Lane> lane = std::move(free_lanes_.back());
    free_lanes_.pop_back();
    return lane;
  }
  auto lane = std::make_unique<Lane>();
  const Staging::Way way = Staging::way_of(device_->facts());
  for (size_t i = 0; i < model_.inputs.size(); ++i) lane->inputs.emplace_back(device_, way);
  for (size_t i = 0; i < model_.outputs.size(); ++i) lane->outputs.emplace_back(device_, way);
  return lane;
}

const DeviceMemory& GpuBackend::own_memory(Way& way, size_t bytes) {
  if (bytes > way.own_bytes) {
    way.own.reset();
    way.own_bytes = 0;
    way.own = device_->buffer(bytes, nullptr, "inputs and outputs on their way");
    way.own_bytes = bytes;
  }
  return *way.own;
}

void GpuBackend::upload_inputs(Lane& lane, Queue& queue, const std::vector<InputBuffer>& inputs,
                               const Piece& piece, bool is_apart) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const loader::Tensor& tensor = model_.tensor(model_.inputs[i]);
    const bool is_levels = inputs[i].is_levels;
    const size_t image_bytes = bytes_of_image(tensor, inputs[i]);
    const size_t bytes = image_bytes * static_cast<size_t>(piece.images);
    const DeviceMemory& to = is_levels || is_apart ? own_memory(lane.inputs[i], bytes)
                                                   : executor_.storage().memory(model_.inputs[i]);
    const bool is_f32 = tensor.dtype == format::DataType::kF32 && !is_levels;
    const std::byte* const data = image_of(inputs[i], image_bytes, piece.first);
    const size_t begin = image_bytes * static_cast<size_t>(piece.begin);
    const size_t end = image_bytes * static_cast<size_t>(piece.end);
    const size_t at = lane.inputs[i].staging.upload(queue, to, data, begin, end, bytes, is_f32, *pool_);
    if (is_f32 && at < end / sizeof(float))
      fail_for_value(tensor, static_cast<const float*>(inputs[i].data),
                     at + static_cast<size_t>(piece.first) * static_cast<size_t>(tensor.elements()));
  }
}

void GpuBackend::enter_inputs(Lane& lane, const std::vector<InputBuffer>& inputs, const Piece& piece,
                              bool is_apart) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int tensor = model_.inputs[i];
    const DeviceMemory* const from = lane.inputs[i].own.get();
    const DeviceMemory& to = executor_.storage().memory(tensor);
    if (inputs[i].is_levels) {
      if (!levels_[i])
        levels_[i] = std::make_unique<Levels>(model_.tensor(tensor), *level_rule(model_, i), device_,
                                              programs_, cache_directory_);
      levels_[i]->executor.prepare(piece.images);
      levels_[i]->executor.bind_terminals({from}, {&to});
      levels_[i]->executor.enqueue_first_layer(piece.begin, piece.end);
      levels_[i]->executor.bind_terminals({}, {});  // `to` may be replaced
    } else if (is_apart) {
      device_->queue().copy(*from, 0, to, 0,
                            executor_.storage().image_bytes(tensor) * static_cast<size_t>(piece.images));
    }
  }
}

int GpuBackend::pieces_of(const std::vector<InputBuffer>& inputs, int images) const {
  if (Staging::way_of(device_->facts()) == Staging::Way::mapped || !executor_.has_parts_of_first_layer())
    return 1;
  size_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    bytes += bytes_of_image(model_.tensor(model_.inputs[i]), inputs[i]);
  const size_t pieces = std::min<size_t>(bytes * static_cast<size_t>(images) / kMinPieceBytes, kMaxPieces);
  return std::max(1, std::min(images, static_cast<int>(pieces)));
}

void GpuBackend::begin_in_pieces(Lane& lane, const std::vector<InputBuffer>& inputs, int first, int images,
                                 const Cancellation& cancellation) {
  make_queues();
  Queue &queue = device_->queue(), &up = *upload_queue_;
  const int pieces = pieces_of(inputs, images);
  follow(up, queue);  // inferences that were begun may read what this overwrites
  for (int i = 0; i < pieces; ++i) {
    const Piece piece{first, images, images * i / pieces, images * (i + 1) / pieces};
    cancellation.check();
    upload_inputs(lane, up, inputs, piece, false);
    follow(queue, up);
    enter_inputs(lane, inputs, piece, false);
    executor_.enqueue_first_layer(piece.begin, piece.end);
    queue.flush();
  }
}

void GpuBackend::make_queues() {
  if (upload_queue_) return;
  upload_queue_ = device_->new_queue();
  download_queue_ = device_->new_queue();
}

void GpuBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                         int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  if (layer_ms == nullptr && batch >= 2 * kMinPieceImages && batch <= executor_.largest_batch())
    return forward_in_pieces(inputs, outputs, batch, cancellation);
  std::unique_ptr<Lane> lane = free_lane();
  Queue& queue = device_->queue();
  in_batches(batch, cancellation, [&](int first, int images) {
    const bool is_in_pieces = layer_ms == nullptr && pieces_of(inputs, images) > 1;
    if (is_in_pieces) {
      begin_in_pieces(*lane, inputs, first, images, cancellation);
    } else {
      const Piece all{first, images, 0, images};
      upload_inputs(*lane, queue, inputs, all, false);
      enter_inputs(*lane, inputs, all, false);
    }
    if (layer_ms != nullptr) {
      const std::vector<double> times = executor_.run_timed(cancellation);
      for (size_t i = 0; i < times.size(); ++i) (*layer_ms)[i] += times[i];
    } else {
      executor_.enqueue(can_replay_ && begun_ == 0, &cancellation, is_in_pieces ? 1 : 0);
    }
    const auto bytes_of = [&](size_t i) { return executor_.storage().image_bytes(model_.outputs[i]); };
    for (size_t i = 0; i < outputs.size(); ++i)
      lane->outputs[i].staging.download(queue, executor_.storage().memory(model_.outputs[i]),
                                        bytes_of(i) * static_cast<size_t>(images));
    for (size_t i = 0; i < outputs.size(); ++i)
      lane->outputs[i].staging.take(image_of(outputs[i], bytes_of(i), first), *pool_);
  });
  free_lanes_.push_back(std::move(lane));
}

/// Outputs are written when all inputs have been read, and so found to be finite.
void GpuBackend::forward_in_pieces(const std::vector<InputBuffer>& inputs,
                                   const std::vector<OutputBuffer>& outputs, int batch,
                                   const Cancellation& cancellation) {
  const int pieces = std::min(batch / kMinPieceImages, kMaxPieces),
            max_images = (batch + pieces - 1) / pieces;
  std::vector<std::unique_ptr<Inference>> begun;
  for (int first = 0; first < batch; first += max_images)
    begun.push_back(begin_images(inputs, outputs, first, std::min(max_images, batch - first), cancellation));
  for (const std::unique_ptr<Inference>& each : begun) each->finish(cancellation);
}

std::unique_ptr<Backend::Inference> GpuBackend::begin(const std::vector<InputBuffer>& inputs,
                                                      const std::vector<OutputBuffer>& outputs, int batch,
                                                      const Cancellation& cancellation) {
  if (batch > executor_.largest_batch()) return Backend::begin(inputs, outputs, batch, cancellation);
  return begin_images(inputs, outputs, 0, batch, cancellation);
}

std::unique_ptr<Backend::Inference> GpuBackend::begin_images(const std::vector<InputBuffer>& inputs,
                                                             const std::vector<OutputBuffer>& outputs,
                                                             int first, int images,
                                                             const Cancellation& cancellation) {
  make_queues();
  std::vector<OutputBuffer> targets;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t image_bytes = executor_.storage().image_bytes(model_.outputs[i]);
    targets.push_back({image_of(outputs[i], image_bytes, first), image_bytes * static_cast<size_t>(images)});
  }
  Queue &queue = device_->queue(), &up = *upload_queue_, &down = *download_queue_;
  auto begun = std::make_unique<BegunInference>(*this, free_lane(), targets);
  Lane& lane = begun->lane();
  guarded([&] {
    const Piece all{first, images, 0, images};
    upload_inputs(lane, up, inputs, all, true);
    prepare(images);
    follow(queue, up);
    enter_inputs(lane, inputs, all, true);
    executor_.enqueue(can_replay_ && begun_ == 1, &cancellation);
    for (size_t i = 0; i < targets.size(); ++i)
      queue.copy(executor_.storage().memory(model_.outputs[i]), 0,
                 own_memory(lane.outputs[i], targets[i].bytes), 0, targets[i].bytes);
    follow(down, queue);
    for (size_t i = 0; i < targets.size(); ++i)
      lane.outputs[i].staging.download(down, *lane.outputs[i].own, targets[i].bytes);
    down.flush();
  });
  return begun;
}

void GpuBackend::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                             int batch, const Cancellation& cancellation) {
  std::unique_ptr<Lane> lane = free_lane();
  in_batches(batch, cancellation, [&](int first, int images) {
    const auto copy_out = [&](int tensor) {
      const OutputBuffer& target = tensors[static_cast<size_t>(tensor)];
      executor_.read(tensor, image_of(target, model_.tensor(tensor).bytes(), first), images, true);
    };
    const Piece all{first, images, 0, images};
    upload_inputs(*lane, device_->queue(), inputs, all, false);
    enter_inputs(*lane, inputs, all, false);
    device_->queue().finish();
    for (const int tensor : model_.inputs) copy_out(tensor);
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      executor_.run_layer(i, cancellation);
      for (const int tensor : analysis::tensors_written(model_.ops[i])) copy_out(tensor);
    }
  });
  free_lanes_.push_back(std::move(lane));
}

void GpuBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                        const std::vector<OutputBuffer>& results, int batch,
                        const Cancellation& cancellation) {
  const std::vector<int> read = analysis::tensors_read(model_.ops[index]);
  const std::vector<int> written = analysis::tensors_written(model_.ops[index]);
  in_batches(batch, cancellation, [&](int first, int images) {
    for (size_t i = 0; i < operands.size(); ++i)
      executor_.write(read[i], image_of(operands[i], model_.tensor(read[i]).bytes(), first), images, true);
    executor_.run_layer(index, cancellation);
    for (size_t i = 0; i < results.size(); ++i)
      executor_.read(written[i], image_of(results[i], model_.tensor(written[i]).bytes(), first), images,
                     true);
  });
}

void GpuBackend::forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                   const std::vector<DeviceBuffer>& outputs, int batch) {
  if (batch < 1 || batch > executor_.largest_batch())
    fail(ErrorCode::input, "batch: got %d, expected 1 to %d on %s", batch, executor_.largest_batch(),
         label_.c_str());
  if (inputs.size() != model_.inputs.size() || outputs.size() != model_.outputs.size())
    fail(ErrorCode::input, "got %zu inputs and %zu outputs, expected %zu and %zu", inputs.size(),
         outputs.size(), model_.inputs.size(), model_.outputs.size());
  prepare(batch);
  // Views of callers' memory stay until the next call: kernels do not retain their arguments before they are enqueued.
  caller_parts_.clear();
  struct Copy {
    const DeviceMemory &from, &to;
    size_t from_offset, to_offset, bytes;
  };
  std::vector<Copy> before, after;
  const auto bind = [&](int tensor, const DeviceBuffer& buffer, bool is_input) -> const DeviceMemory* {
    const loader::Tensor& info = model_.tensor(tensor);
    const size_t bytes = info.bytes() * static_cast<size_t>(batch);
    const auto keep = [&](std::unique_ptr<DeviceMemory> memory) -> const DeviceMemory* {
      caller_parts_.push_back(std::move(memory));
      return caller_parts_.back().get();
    };
    const DeviceMemory* const memory = keep(device_->borrow(buffer, bytes, info.name.c_str()));
    const bool is_home = executor_.storage().homes().home(tensor).place ==
                         (is_input ? analysis::Place::input : analysis::Place::output);
    if (is_home && buffer.offset == 0) return memory;
    if (is_home && device_->facts().has_overlapping_parts &&
        buffer.offset % device_->facts().base_align_bytes == 0)
      return keep(device_->part(*memory, buffer.offset, bytes));
    // Where the device has no view of the part, or an output is an input passed through, it copies.
    const DeviceMemory& own = executor_.storage().memory(tensor);
    if (is_input)
      before.push_back({*memory, own, buffer.offset, 0, bytes});
    else
      after.push_back({own, *memory, 0, buffer.offset, bytes});
    return &own;
  };
  DeviceStorage::Terminals bound_inputs, bound_outputs;
  for (size_t i = 0; i < inputs.size(); ++i) bound_inputs.push_back(bind(model_.inputs[i], inputs[i], true));
  executor_.bind_terminals(bound_inputs, {});
  for (size_t i = 0; i < outputs.size(); ++i)
    bound_outputs.push_back(bind(model_.outputs[i], outputs[i], false));
  executor_.bind_terminals(bound_inputs, bound_outputs);
  const auto run = [&](const std::vector<Copy>& copies) {
    for (const Copy& copy : copies)
      device_->queue().copy(copy.from, copy.from_offset, copy.to, copy.to_offset, copy.bytes);
  };
  try {
    run(before);
    executor_.enqueue(false, nullptr);
    run(after);
  } catch (...) {
    executor_.bind_terminals({}, {});
    throw;
  }
  executor_.bind_terminals({}, {});
  device_->queue().flush();
}

}  // namespace phonebit::engine::gpu
