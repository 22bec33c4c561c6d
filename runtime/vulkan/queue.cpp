#include "vulkan/queue.h"

#include <algorithm>

#include "types/fail.h"

namespace phonebit::engine::vulkan {
namespace {

class Event final : public gpu::Event {
 public:
  /// `begin`, `end`: times of Commands; only of a queue that takes them.
  Event(std::shared_ptr<Commands> commands, uint32_t begin, uint32_t end)
      : commands_(std::move(commands)), begin_(begin), end_(end) {}

  const std::shared_ptr<Commands>& commands() const { return commands_; }
  bool is_over() const override { return commands_->is_over(); }
  void wait() const override { commands_->wait(); }
  gpu::EventSpan span() const override {
    const uint64_t begin = commands_->nanoseconds(begin_);
    return {begin, begin, commands_->nanoseconds(end_)};
  }

 private:
  std::shared_ptr<Commands> commands_;
  uint32_t begin_, end_;
};

class Recording final : public gpu::Recording {
 public:
  Recording(std::shared_ptr<LogicalDevice> device, Queue& queue)
      : queue_(queue), commands_(std::make_shared<Commands>(std::move(device), Commands::Kind::replayed)) {}

  bool add(const gpu::Kernel& kernel, const gpu::WorkSize& size) override {
    return commands_->record(
        [&](Commands& commands) { commands.launch(static_cast<const Kernel&>(kernel), size); });
  }
  bool end() override {
    commands_->submit();
    return true;
  }
  void enqueue() override {
    queue_.flush();
    commands_->replay();
    queue_.add(commands_);
  }

 private:
  Queue& queue_;
  std::shared_ptr<Commands> commands_;
};

VkBufferCopy piece(size_t from, size_t to, size_t bytes) { return {from, to, bytes}; }

/// A region between its place in memory and a dense copy.
std::vector<VkBufferCopy> pieces_of(const gpu::Region& region, size_t offset, bool is_from_dense) {
  std::vector<VkBufferCopy> pieces;
  for (size_t i = 0; i < region.runs; ++i) {
    const size_t dense = i * region.run_bytes, place = offset + region.offset + i * region.pitch;
    pieces.push_back(is_from_dense ? piece(dense, place, region.run_bytes)
                                   : piece(place, dense, region.run_bytes));
  }
  return pieces;
}

}  // namespace

Queue::~Queue() { drain(); }

void Queue::open_commands() {
  // What is over serves again.
  while (!commands_.empty() && commands_.front()->is_over()) {
    if (commands_.front()->kind() != Commands::Kind::replayed) spare_.push_back(std::move(commands_.front()));
    commands_.erase(commands_.begin());
  }
  const auto free = std::find_if(spare_.begin(), spare_.end(), [](const std::shared_ptr<Commands>& commands) {
    return commands.use_count() == 1;  // no event of it is left
  });
  if (free == spare_.end()) {
    commands_.push_back(std::make_shared<Commands>(device_, kind_));
    return;
  }
  (*free)->reset();
  commands_.push_back(std::move(*free));
  spare_.erase(free);
}

template <class Body>
std::shared_ptr<Commands> Queue::record(gpu::Events* events, const Body& body) {
  const bool is_timed = events != nullptr && kind_ == Commands::Kind::timed_once;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_timed && !commands_.empty() && !commands_.back()->has_room_for_times()) commands_.back()->submit();
  uint32_t begin = 0, end = 0;
  const auto record = [&](Commands& commands) {
    if (is_timed) begin = commands.take_time();
    body(commands);
    if (is_timed) end = commands.take_time();
  };
  while (commands_.empty() || !commands_.back()->record(record)) open_commands();
  if (events != nullptr) events->push_back(std::make_unique<Event>(commands_.back(), begin, end));
  return commands_.back();
}

bool Queue::is_idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_over = [](const std::shared_ptr<Commands>& commands) { return commands->is_over(); };
  if (awaited_ != nullptr && awaited_->is_over()) awaited_ = nullptr;
  return awaited_ == nullptr && std::all_of(commands_.begin(), commands_.end(), is_over);
}

std::shared_ptr<Buffer> Queue::staging(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Buffer>& buffer : staging_)
    if (buffer.use_count() == 1 && buffer->bytes() >= bytes) return buffer;
  // Larger than today's need, so that the next one fits, too.
  staging_.erase(
      std::remove_if(staging_.begin(), staging_.end(),
                     [](const std::shared_ptr<Buffer>& buffer) { return buffer.use_count() == 1; }),
      staging_.end());
  staging_.push_back(std::make_shared<Buffer>(device_, bytes, Buffer::Place::host, "bytes on their way"));
  return staging_.back();
}

void Queue::launch(const gpu::Kernel& kernel, const gpu::WorkSize& size, gpu::Events* events) {
  record(events, [&](Commands& commands) { commands.launch(static_cast<const Kernel&>(kernel), size); });
}

void Queue::copy(const gpu::DeviceMemory& from, size_t from_offset, const gpu::DeviceMemory& to,
                 size_t to_offset, size_t bytes) {
  const Memory &source = own(from), &target = own(to);
  record(nullptr, [&](Commands& commands) {
    commands.copy(source.buffer(), target.buffer(),
                  {piece(source.offset() + from_offset, target.offset() + to_offset, bytes)});
  });
}

void Queue::copy_to_image(const gpu::DeviceMemory&, const gpu::DeviceMemory&, size_t, size_t, size_t,
                          gpu::Events*) {
  fail(ErrorCode::internal, "no image of a Vulkan device exists");
}

void Queue::write(const gpu::DeviceMemory& to, const gpu::Region& region, const std::byte* host, bool) {
  const Memory& target = own(to);
  const std::byte* const from = host + region.offset;
  if (target.host() != nullptr && is_idle()) {
    for (size_t i = 0; i < region.runs; ++i)
      std::copy_n(from + i * region.pitch, region.run_bytes,
                  target.host() + region.offset + i * region.pitch);
    return;
  }
  const std::shared_ptr<Buffer> dense = staging(region.bytes());
  gather(dense->host(), region, host);
  record(nullptr, [&](Commands& commands) {
    commands.copy(dense, target.buffer(), pieces_of(region, target.offset(), true));
  });
}

void Queue::read(const gpu::DeviceMemory& from, const gpu::Region& region, std::byte* host, bool must_wait,
                 gpu::Events* events) {
  const Memory& source = own(from);
  const std::shared_ptr<Buffer> dense = staging(region.bytes());
  const std::shared_ptr<Commands> used = record(events, [&](Commands& commands) {
    commands.copy(source.buffer(), dense, pieces_of(region, source.offset(), false));
    commands.deliver(dense, region, host);
  });
  if (must_wait) used->wait();
}

std::byte* Queue::map(const gpu::DeviceMemory& memory, MapUse, size_t begin, size_t, bool must_wait,
                      gpu::Events* events) {
  const Memory& mapped = own(memory);
  if (mapped.host() == nullptr)
    fail(ErrorCode::device, "%s does not share this memory with the host", device_->physical().name.c_str());
  const std::shared_ptr<Commands> before = record(events, [](Commands&) {});
  if (must_wait) before->wait();
  return mapped.host() + begin;
}

void Queue::mark(gpu::Events& events) {
  record(&events, [](Commands&) {});
}

void Queue::wait_for(const gpu::Event& event) {
  const std::shared_ptr<Commands>& before = static_cast<const Event&>(event).commands();
  before->submit();  // the device's queue keeps the order
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_ = before;
}

void Queue::flush() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!commands_.empty()) commands_.back()->submit();
}

void Queue::finish() {
  flush();
  std::vector<std::shared_ptr<Commands>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = commands_;
  }
  for (const std::shared_ptr<Commands>& commands : all) commands->wait();
}

void Queue::add(std::shared_ptr<Commands> replayed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  commands_.push_back(std::move(replayed));
}

std::unique_ptr<gpu::Recording> make_recording(std::shared_ptr<LogicalDevice> device, Queue& queue) {
  return std::make_unique<Recording>(std::move(device), queue);
}

}  // namespace phonebit::engine::vulkan
