// What the GPU layer asks of an API: memory, programs, queues. An API implements these classes (runtime/opencl).
//
// All functions throw Error(device) with the API's words where it refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device_facts.h"
#include "types/error.h"
#include "types/options.h"
#include "types/tensor.h"

namespace phonebit::engine::gpu {

struct KernelChoice;

/// A buffer or an image of a device.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Where the host reaches the same bytes at any time; null: only by commands of a queue.
  virtual std::byte* address() const { return nullptr; }
};

/// One kernel with its arguments, which a launch reads when it is enqueued or recorded. What is bound outlives
/// the launch.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void bind(unsigned position, int value) = 0;
  virtual void bind(unsigned position, const DeviceMemory& memory) = 0;
  /// Work-items that a work-group may have.
  virtual size_t max_group_size() const = 0;
};

enum class Language {
  core,     ///< all layers
  atomics,  ///< and atomic variables that are shared with the host
};

/// The text of a program, and the kernel for which it is compiled.
struct ProgramSource {
  const std::string &kernel, &text;
  Language language = Language::core;
};

/// The compiler rejects a program's text: another try would end the same way.
struct BuildError : Error {
  using Error::Error;
};

class Program {
 public:
  virtual ~Program() = default;
  /// A new object for each call: arguments are state.
  virtual std::unique_ptr<Kernel> kernel(const ProgramSource& source) const = 0;
  /// What Device::load accepts; empty where the driver gives none.
  virtual std::string binary() const = 0;
};

/// When a command was enqueued, began and ended by the device's clock, in nanoseconds.
struct EventSpan {
  uint64_t queued, begin, end;
};

/// The end of a command.
class Event {
 public:
  virtual ~Event() = default;
  /// Does not wait; false also where the command failed.
  virtual bool is_over() const = 0;
  virtual void wait() const = 0;
  /// Of a command of Device::profiling_queue that is over.
  virtual EventSpan span() const = 0;
};
using Events = std::vector<std::unique_ptr<Event>>;

/// Comes when the host says so; commands wait for it.
class HostEvent : public Event {
 public:
  virtual void complete() = 0;
};

/// `runs` stretches of `run_bytes`, the first at `offset`, each `pitch` after the one before it: a rectangle of
/// a tensor.
struct Region {
  size_t offset, run_bytes, runs, pitch;

  static Region of_bytes(size_t begin, size_t bytes) { return {begin, bytes, 1, bytes}; }
  size_t bytes() const { return run_bytes * runs; }
};

/// Work-items of a launch. `local`: null where the driver chooses.
struct WorkSize {
  unsigned dimensions;
  const size_t *global, *local;
};

/// Commands that run in the order in which they were enqueued. `events`, where it is not null, receives the
/// command's. Thread-safe.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void launch(const Kernel& kernel, const WorkSize& size, Events* events = nullptr) = 0;
  virtual void copy(const DeviceMemory& from, size_t from_offset, const DeviceMemory& to, size_t to_offset,
                    size_t bytes) = 0;
  /// Texels of 16 bytes, `width` in a row, from the same rows of a buffer.
  virtual void copy_to_image(const DeviceMemory& from, const DeviceMemory& image, size_t width,
                             size_t first_row, size_t rows, Events* events) = 0;
  /// Between a region of a buffer and the same one of host memory, which stays as it is until the command is
  /// over, where it does not wait.
  virtual void write(const DeviceMemory& to, const Region& region, const std::byte* host, bool must_wait) = 0;
  virtual void read(const DeviceMemory& from, const Region& region, std::byte* host, bool must_wait,
                    Events* events = nullptr) = 0;
  /// Makes a buffer's bytes [begin, begin + bytes) the host's, when the command is over: to read them, to write
  /// all of them anew, or both. The device must not use the buffer until it is unmapped, nor write what is read.
  enum class MapUse { read, write, both };
  virtual std::byte* map(const DeviceMemory& memory, MapUse use, size_t begin, size_t bytes, bool must_wait,
                         Events* events = nullptr) = 0;
  virtual void unmap(const DeviceMemory& memory, std::byte* address) = 0;
  /// An event that comes when all commands before it are over.
  virtual void mark(Events& events) = 0;
  /// Later commands wait for it.
  virtual void wait_for(const Event& event) = 0;
  /// Hands to the device what was enqueued.
  virtual void flush() = 0;
  /// Waits until all commands are over.
  virtual void finish() = 0;

  /// finish() after a failure: what was enqueued may use memory that goes.
  void drain() noexcept;
};

/// Launches as their arguments were when they were added, replayed in that order on the device's queue.
class Recording {
 public:
  virtual ~Recording() = default;
  /// False where the driver refuses; the recording is then of no use.
  virtual bool add(const Kernel& kernel, const WorkSize& size) = 0;
  virtual bool end() = 0;
  /// Enqueues all launches. What was enqueued before must be over.
  virtual void enqueue() = 0;
};

/// A device with its queues. Thread-safe; outlives all that it has made.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;

  enum class Use {
    device,               ///< by the device; commands copy
    mapped,               ///< the host maps it, without a copy where it shares memory with the device
    shared,               ///< DeviceMemory::address is coherent with the device
    shared_with_atomics,  ///< even while a kernel runs; for kernels alone
  };
  /// At least `bytes` (and 1), filled from `data` where that is not null. Throws Error(device) naming `what` and
  /// the size where there is not enough memory, or no memory of that use.
  virtual std::unique_ptr<DeviceMemory> buffer(size_t bytes, const void* data, const char* what,
                                               Use use = Use::device) const = 0;
  /// Rows of texels of 16 bytes, filled from `data` (dense) where that is not null.
  virtual std::unique_ptr<DeviceMemory> image(size_t width, size_t height, const void* data,
                                              const char* what) const = 0;
  /// A caller's memory, checked to hold `bytes` from its offset; the caller keeps it. Throws Error(input)
  /// naming the tensor.
  virtual std::unique_ptr<DeviceMemory> borrow(const DeviceBuffer& buffer, size_t bytes,
                                               const char* tensor) const = 0;
  /// A part of a buffer, from a multiple of facts().base_align_bytes on.
  virtual std::unique_ptr<DeviceMemory> part(const DeviceMemory& whole, size_t offset,
                                             size_t bytes) const = 0;

  /// Whether a kernel with these tunables can become a program: an API without a compiler has those that were made
  /// for it.
  virtual bool has_program(const KernelChoice&) const { return true; }
  /// Throws a BuildError with the compiler's log where the text does not compile.
  virtual std::unique_ptr<Program> compile(const ProgramSource& source) const = 0;
  /// From a binary; null where the driver refuses it, for instance after an update that kept its version.
  virtual std::unique_ptr<Program> load(const ProgramSource& source, const std::string& binary) const = 0;
  /// What else decides about a program: "-cl-std=CL1.2 ...".
  virtual const std::string& build_options(Language language) const = 0;

  virtual Queue& queue() = 0;
  /// Keeps the times of its commands.
  virtual Queue& profiling_queue() = 0;
  virtual std::unique_ptr<Queue> new_queue() const = 0;
  virtual std::unique_ptr<HostEvent> new_host_event() const = 0;
  /// Null where the device has none.
  virtual std::unique_ptr<Recording> new_recording() = 0;
  /// The API's own objects.
  virtual GpuHandles handles() const = 0;
};

/// Lets later commands of `queue` wait for those that `other` has now.
void follow(Queue& queue, Queue& other);

/// Milliseconds that commands ran, without the gaps between them. They are over.
double event_milliseconds(const Events& events);

}  // namespace phonebit::engine::gpu
