#include "gpu/executor.h"

#include <algorithm>
#include <climits>

#include "analysis/op_part.h"
#include "analysis/work.h"
#include "format/half.h"
#include "gpu/staging.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

using loader::Model;
using loader::Op;
using loader::Tensor;

namespace {

/// Operations (analysis::work) between two looks at a cancellation: less than a tenth of a second of a
/// phone's GPU, of larger ones by their size, and of the slowest kernels that OpenCL on a CPU has.
double portion_of(const DeviceFacts& device) {
  constexpr double kUnitsOfPhones = 16.0;
  const double phones_in_a_unit = device.has_unified_memory ? 1.0 : 8.0;  // of a card
  return device.is_gpu ? 5e8 * std::max(1.0, phones_in_a_unit * device.compute_units / kUnitsOfPhones) : 2e7;
}

}  // namespace

Executor::Executor(const Model& model, std::shared_ptr<Device> device, ProgramCache& programs,
                   const Options& options)
    : model_(model),
      device_(std::move(device)),
      max_memory_bytes_(options.max_memory_bytes),
      budget_(options.max_memory_bytes),
      storage_(model, *device_, options.precision),
      layers_(model, device_, programs, options, storage_) {
  budget_.take(storage_.arena_bytes(1), "activations");
  for (const Op& op : model.ops) budget_.take(max_weight_bytes(model, op), "weights");
}

void Executor::prepare_layer(size_t index) {
  check_interrupt();  // compiling takes long
  layers_.prepare(index);
  is_bound_ = false;
}

void Executor::set_layer(size_t index, const KernelChoice& choice, bool has_channel_parts) {
  layers_.set(index, choice, has_channel_parts);
  is_bound_ = false;
}

int Executor::largest_batch() const {
  const uint64_t limit = device_->facts().max_buffer_bytes;
  uint64_t batch = INT_MAX;
  const auto allow = [&](uint64_t capacity, uint64_t of_one_image) {
    if (of_one_image > 0) batch = std::min(batch, capacity / of_one_image);
  };
  allow(limit, storage_.largest_buffer_bytes());
  // A large batch must not take the whole device: it gains nothing beyond some images.
  const uint64_t scratch_bytes = layers_.scratch_bytes();
  uint64_t of_one_image = storage_.arena_bytes(1) + scratch_bytes;
  for (const int tensor : model_.inputs) of_one_image += storage_.image_bytes(tensor);
  for (const int tensor : model_.outputs) of_one_image += storage_.image_bytes(tensor);
  allow(max_memory_bytes_, of_one_image);
  allow(limit, scratch_bytes);
  allow(INT_MAX, scratch_bytes);  // kernels count elements in int
  for (const Tensor& tensor : model_.tensors) {
    allow(limit, tensor.bytes());
    allow(INT_MAX, static_cast<uint64_t>(tensor.elements()));
  }
  for (size_t i = 0; i < model_.ops.size(); ++i)
    allow(device_->facts().image2d_max_height, layers_.layer(i).image_height);
  return static_cast<int>(std::max<uint64_t>(batch, 1));
}

void Executor::prepare(int batch) {
  if (batch == batch_ && is_bound_) return;
  storage_.reserve(batch);
  batch_ = batch;
  recorded_batch_ = 0;
  bind_arguments();
}

void Executor::bind_terminals(DeviceStorage::Terminals inputs, DeviceStorage::Terminals outputs) {
  storage_.bind_terminals(std::move(inputs), std::move(outputs));
  bind_arguments();
}

void Executor::bind_arguments() {
  for (size_t i = 0; i < model_.ops.size(); ++i) layers_.bind(i, batch_);
  is_bound_ = true;
}

void Executor::enqueue_layer(size_t index, Queue& queue, Events* events) {
  layers_.enqueue(index, queue, events);
}

void Executor::enqueue_part(size_t index, const OutputPart& part) {
  layers_.bind_part(index, part);
  is_bound_ = false;
  enqueue_layer(index, device_->queue(), nullptr);
}

/// What is in the queue cannot be cancelled. So there are never more than two portions of work in it: one
/// that runs, and one so that the device need not wait for the host.
class Executor::Portions {
 public:
  Portions(const DeviceFacts& device, Queue& queue, const Cancellation& cancellation)
      : max_(portion_of(device)), queue_(queue), cancellation_(cancellation) {}

  /// `enqueue` takes a list of events, or null.
  template <class Enqueue>
  void add(double work, const Enqueue& enqueue) {
    sum_ += work;
    if (sum_ <= max_) return enqueue(nullptr);
    sum_ = 0.0;
    Events events;
    enqueue(&events);
    queue_.flush();
    if (before_) before_->wait();
    cancellation_.check();
    if (!events.empty()) before_ = std::move(events.back());
  }

 private:
  double max_;
  Queue& queue_;
  const Cancellation& cancellation_;
  double sum_ = 0.0;
  std::unique_ptr<Event> before_;
};

/// Calls enqueue(work) for a layer that is bound, or for parts of it in turn: of whole rows where a row is
/// less than a portion.
template <class Enqueue>
void Executor::for_each_part(size_t index, const Enqueue& enqueue) {
  const Op& op = model_.ops[index];
  const Tensor& out = model_.output(op);
  const double work = batch_ * analysis::work(model_, op);
  const auto pixels = static_cast<int>(out.pixels()) * batch_, rows = out.height * batch_;
  const double wanted = 1 + work / portion_of(device_->facts());
  const int grain = wanted < rows ? out.width : 1, grains = pixels / grain;
  const int parts = static_cast<int>(std::min<double>(grains, wanted));
  if (parts == 1 || !analysis::has_pixel_parts(op)) return enqueue(work);
  is_bound_ = false;
  for (int part = 0; part < parts; ++part) {
    const auto pixel = [&](int number) { return static_cast<int>(int64_t{grains} * number / parts) * grain; };
    layers_.bind_pixels(index, pixel(part), pixel(part + 1), batch_);
    enqueue(work / parts);
  }
}

bool Executor::has_parts_of_first_layer() const {
  if (model_.ops.empty()) return false;
  const Op& first = model_.ops[0];
  return analysis::has_pixel_parts(first) && layers_.layer(0).image_of < 0 &&
         batch_ * analysis::work(model_, first) <= portion_of(device_->facts());
}

void Executor::enqueue_first_layer(int begin, int end) {
  if (begin == 0 && end == batch_) return enqueue_layer(0, device_->queue(), nullptr);
  const auto pixels = static_cast<int>(model_.output(model_.ops[0]).pixels());
  is_bound_ = false;  // an error or a cancellation may end the inference before the last images
  layers_.bind_pixels(0, begin * pixels, end * pixels, batch_);
  enqueue_layer(0, device_->queue(), nullptr);
  if (end < batch_) return;
  layers_.bind(0, batch_);
  is_bound_ = true;
}

void Executor::enqueue(bool can_replay, const Cancellation* cancellation, size_t first_layer) {
  double all_work = 0.0;
  for (const Op& op : model_.ops) all_work += batch_ * analysis::work(model_, op);
  if (cancellation != nullptr && all_work > portion_of(device_->facts()))
    return enqueue_in_portions(first_layer, model_.ops.size(), *cancellation);
  if (can_replay && first_layer == 0 && record()) return recording_->enqueue();
  for (size_t i = first_layer; i < model_.ops.size(); ++i) enqueue_layer(i, device_->queue(), nullptr);
}

void Executor::enqueue_in_portions(size_t begin, size_t end, const Cancellation& cancellation) {
  Portions portions(device_->facts(), device_->queue(), cancellation);
  for (size_t i = begin; i < end; ++i)
    for_each_part(i, [&](double work) {
      portions.add(work, [&](Events* events) { enqueue_layer(i, device_->queue(), events); });
    });
}

void Executor::run_layer(size_t index, const Cancellation& cancellation) {
  enqueue_in_portions(index, index + 1, cancellation);
}

std::vector<double> Executor::run_timed(const Cancellation& cancellation) {
  device_->queue().finish();
  Queue& queue = device_->profiling_queue();
  std::vector<Events> events(model_.ops.size());
  double portion = 0.0;
  for (size_t i = 0; i < events.size(); ++i)
    for_each_part(i, [&](double work) {
      enqueue_layer(i, queue, &events[i]);
      portion += work;
      if (portion <= portion_of(device_->facts())) return;
      portion = 0.0;
      queue.finish();
      cancellation.check();
    });
  queue.finish();
  std::vector<double> milliseconds;
  for (const Events& of_layer : events) milliseconds.push_back(event_milliseconds(of_layer));
  return milliseconds;
}

/// Records the layers for the current batch, once. False where that is not possible: the device cannot, its
/// driver refuses, or there are commands that are no kernels.
bool Executor::record() {
  if (recorded_batch_ == batch_) return true;
  if (recorded_batch_ < 0) return false;
  recorded_batch_ = -1;
  recording_.reset();
  recording_ = device_->new_recording();
  if (!recording_) return false;
  for (size_t i = 0; i < model_.ops.size(); ++i)
    if (!layers_.record(i, *recording_)) return false;
  if (!recording_->end()) return false;
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
  device_->queue().write(storage_.memory(tensor), Region::of_bytes(0, bytes),
                         static_cast<const std::byte*>(data), must_wait);
}

void Executor::read(int tensor, void* data, int images, bool must_wait) {
  read_buffer(device_->queue(), storage_.memory(tensor),
              storage_.image_bytes(tensor) * static_cast<size_t>(images), storage_.is_half(tensor), must_wait,
              data);
}

}  // namespace phonebit::engine::gpu
