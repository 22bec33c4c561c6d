#include "gpu/staging.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>

#include "backend/input_values.h"
#include "format/half.h"
#include "threads/keep_minimum.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace phonebit::engine::gpu {
namespace {

/// What the device copies at a time: enqueueing one takes a driver 15 us, beginning it the device 10.
constexpr size_t kPieceBytes = size_t{2} << 20;
/// What a thread copies at a time: all of them fill a piece together. Fits the cache, so that values are
/// checked there.
constexpr size_t kShareBytes = size_t{1} << 16;
constexpr int kSharesOfPiece = kPieceBytes / kShareBytes;

/// Libraries for phones, whose GPUs share the host's memory, have no other way: elsewhere it is only slower.
bool is_mapped_way([[maybe_unused]] Staging::Way way) {
#ifdef PHONEBIT_FOR_PHONES
  return true;
#else
  return way == Staging::Way::mapped;
#endif
}

int pieces_of(size_t bytes) { return static_cast<int>((bytes + kPieceBytes - 1) / kPieceBytes); }
int shares_of(size_t bytes) { return static_cast<int>((bytes + kShareBytes - 1) / kShareBytes); }

size_t piece_begin(int piece) { return static_cast<size_t>(piece) * kPieceBytes; }

/// Past the caches: a device fetches lines that are changed in some core's cache at half the bus's speed.
void copy_to_memory(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__) && !defined(PHONEBIT_FOR_PHONES)
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                  c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

/// The first error of several threads, of which none may throw.
class FirstError {
 public:
  /// In a handler.
  void keep() {
    if (!is_set_.exchange(true)) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> is_set_{false};
  std::exception_ptr error_;
};

}  // namespace

Staging::Way Staging::way_of(const DeviceFacts& device) {
  return is_mapped_way(device.has_unified_memory ? Way::mapped : Way::pinned) ? Way::mapped : Way::pinned;
}

void read_buffer(Queue& queue, const DeviceMemory& from, size_t bytes, bool is_half, bool must_wait,
                 void* data) {
  std::vector<uint16_t> halves(is_half ? bytes / sizeof(uint16_t) : 0);
  queue.read(from, Region::of_bytes(0, bytes),
             static_cast<std::byte*>(is_half ? static_cast<void*>(halves.data()) : data),
             must_wait || is_half);
  if (is_half) format::from_halves(halves.data(), halves.size(), static_cast<float*>(data));
}

Staging::Staging(std::shared_ptr<Device> device, Way way) : device_(std::move(device)), way_(way) {}

Staging::~Staging() {
  try {
    for (const std::unique_ptr<Event>& event : arrived_) event->wait();
    if (memory_)
      device_->queue().unmap(*memory_, host_);
    else if (!arrived_.empty())
      queue_->unmap(*from_, host_);
  } catch (const Error&) {  // the device has failed, which others are told
  }
}

/// The memory stays mapped: the host writes and reads it while copies use its address.
void Staging::reserve(size_t bytes) {
  if (bytes <= capacity_) return;
  if (memory_) device_->queue().unmap(*memory_, host_);
  capacity_ = 0;
  memory_.reset();
  memory_ = device_->buffer(bytes, nullptr, "copies between host and device", Device::Use::mapped);
  host_ = device_->queue().map(*memory_, Queue::MapUse::both, 0, bytes, true);
  capacity_ = bytes;
}

size_t Staging::upload(Queue& queue, const DeviceMemory& to, const std::byte* data, size_t begin, size_t end,
                       size_t bytes, bool is_f32, threads::ThreadPool& pool) {
  const bool is_mapped = is_mapped_way(way_);
  if (is_mapped)
    host_ = queue.map(to, Queue::MapUse::write, begin, end - begin, true);
  else
    reserve(bytes);
  std::byte* const host = is_mapped ? host_ : host_ + begin;
  const int shares = shares_of(end - begin);
  std::vector<std::atomic<int>> copied(static_cast<size_t>(is_mapped ? 0 : pieces_of(end - begin)));
  std::atomic<size_t> first{end};
  FirstError error;
  pool.parallel_for(shares, [&](int share) {
    share = shares - 1 - share;  // the pool begins with the last one
    const size_t place = static_cast<size_t>(share) * kShareBytes, at = begin + place;
    const size_t size = std::min(end - at, kShareBytes);
    // Asked again here: where it is a constant, the other way is not compiled.
    if (is_mapped_way(way_))
      std::memcpy(host + place, data + at, size);
    else
      copy_to_memory(host + place, data + at, size);
    if (is_f32) {
      const size_t end_value = (at + size) / sizeof(float);
      const size_t found =
          find_not_finite(reinterpret_cast<const float*>(data), at / sizeof(float), end_value);
      if (found < end_value) threads::keep_minimum(first, found);
    }
    if (is_mapped_way(way_)) return;
    // Who copies the last share of a piece enqueues it.
    const int piece = share / kSharesOfPiece;
    const int shares_here = std::min(shares - piece * kSharesOfPiece, kSharesOfPiece);
    if (++copied[static_cast<size_t>(piece)] < shares_here) return;
    const size_t from = piece_begin(piece), piece_bytes = std::min(end - begin - from, kPieceBytes);
    try {
      queue.write(to, Region::of_bytes(begin + from, piece_bytes), host_, false);
    } catch (const Error&) {
      error.keep();
    }
  });
  if (is_mapped) queue.unmap(to, host_);
  error.rethrow();
  return first.load();
}

void Staging::download(Queue& queue, const DeviceMemory& from, size_t bytes) {
  queue_ = &queue;
  from_ = &from;
  bytes_ = bytes;
  if (is_mapped_way(way_)) {
    host_ = queue.map(from, Queue::MapUse::read, 0, bytes, false, &arrived_);
    return;
  }
  reserve(bytes);
  for (int piece = 0; piece < pieces_of(bytes); ++piece) {
    const size_t begin = piece_begin(piece), size = std::min(bytes - begin, kPieceBytes);
    queue.read(from, Region::of_bytes(begin, size), host_, false, &arrived_);
  }
}

void Staging::take(std::byte* data, threads::ThreadPool& pool) {
  FirstError error;
  const auto await = [&](size_t piece) {
    try {
      arrived_[piece]->wait();
      return true;
    } catch (const Error&) {
      error.keep();
      return false;
    }
  };
  const bool is_mapped = is_mapped_way(way_), is_there = !is_mapped || await(0);
  if (is_there)
    pool.parallel_for(pieces_of(bytes_), [&](int piece) {
      const size_t begin = piece_begin(piece);
      if (is_mapped_way(way_) || await(static_cast<size_t>(piece)))
        std::memcpy(data + begin, host_ + begin, std::min(bytes_ - begin, kPieceBytes));
    });
  arrived_.clear();
  if (is_mapped) queue_->unmap(*from_, host_);
  error.rethrow();
}

}  // namespace phonebit::engine::gpu
