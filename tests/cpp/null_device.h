// A GPU device of no API, which records what it is asked and computes nothing.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "types/fail.h"

namespace phonebit::engine::test {

using namespace gpu;

using Calls = std::vector<std::string>;

/// Memory of the host, under a name.
struct RecordedMemory final : DeviceMemory {
  std::string name;
  std::vector<std::byte> bytes;
};
inline RecordedMemory& own(const DeviceMemory& memory) {
  return const_cast<RecordedMemory&>(static_cast<const RecordedMemory&>(memory));
}

struct RecordedKernel final : Kernel {
  std::string name;
  std::vector<std::string> arguments;

  void set(unsigned position, std::string value) {
    arguments.resize(std::max<size_t>(arguments.size(), position + 1));
    arguments[position] = std::move(value);
  }
  void bind(unsigned position, int value) override { set(position, std::to_string(value)); }
  void bind(unsigned position, const DeviceMemory& memory) override { set(position, own(memory).name); }
  size_t max_group_size() const override { return 1024; }
};

struct RecordedProgram final : Program {
  std::unique_ptr<Kernel> kernel(const ProgramSource& source) const override {
    auto made = std::make_unique<RecordedKernel>();
    made->name = source.kernel;
    return made;
  }
  std::string binary() const override { return ""; }
};

struct Over final : Event {
  bool is_over() const override { return true; }
  void wait() const override {}
  EventSpan span() const override { return {1, 2, 3000002}; }
};

struct RecordedQueue final : Queue {
  Calls& calls;
  explicit RecordedQueue(Calls& all) : calls(all) {}

  void note(std::string call, Events* events) {
    calls.push_back(std::move(call));
    if (events != nullptr) events->push_back(std::make_unique<Over>());
  }
  void launch(const Kernel& kernel, const WorkSize& size, Events* events) override {
    const auto& recorded = static_cast<const RecordedKernel&>(kernel);
    std::string text = recorded.name + "(";
    for (const std::string& argument : recorded.arguments) text += argument + ",";
    text += ") of";
    for (unsigned i = 0; i < size.dimensions; ++i)
      text += " " + std::to_string(size.global[i]) + "/" + std::to_string(size.local[i]);
    note(text, events);
  }
  void copy(const DeviceMemory&, size_t, const DeviceMemory&, size_t, size_t) override {
    note("copy", nullptr);
  }
  void copy_to_image(const DeviceMemory&, const DeviceMemory&, size_t, size_t, size_t,
                     Events* events) override {
    note("copy to image", events);
  }
  void write(const DeviceMemory& to, const Region& region, const std::byte* host, bool) override {
    std::memcpy(own(to).bytes.data() + region.offset, host + region.offset, region.bytes());
    note("write " + own(to).name, nullptr);
  }
  void read(const DeviceMemory& from, const Region& region, std::byte* host, bool, Events* events) override {
    std::memcpy(host + region.offset, own(from).bytes.data() + region.offset, region.bytes());
    note("read " + own(from).name, events);
  }
  std::byte* map(const DeviceMemory& memory, MapUse, size_t begin, size_t, bool, Events* events) override {
    note("map", events);
    return own(memory).bytes.data() + begin;
  }
  void unmap(const DeviceMemory&, std::byte*) override { note("unmap", nullptr); }
  void mark(Events& events) override { note("mark", &events); }
  void wait_for(const Event&) override { note("wait", nullptr); }
  void flush() override {}
  void finish() override { note("finish", nullptr); }
};

struct NullDevice final : Device {
  DeviceFacts description{};
  mutable Calls calls;
  RecordedQueue own_queue{calls};
  std::string no_options;
  std::string ends_the_process;  ///< the kernel whose program does when it is compiled

  NullDevice() {
    description.api = "null";
    description.name = "a device of no API";
    description.vendor = description.family = "unknown";
    description.max_work_group_size = 256;
    description.max_buffer_bytes = description.global_bytes = uint64_t{1} << 30;
    description.local_bytes = 32768;
    description.has_fma = description.has_exact_division = true;
  }
  const DeviceFacts& facts() const override { return description; }
  std::unique_ptr<DeviceMemory> buffer(size_t bytes, const void* data, const char* what, Use) const override {
    auto made = std::make_unique<RecordedMemory>();
    made->name = what;
    made->bytes.resize(bytes);
    if (data != nullptr) std::memcpy(made->bytes.data(), data, bytes);
    return made;
  }
  std::unique_ptr<DeviceMemory> image(size_t, size_t, const void*, const char* what) const override {
    fail(ErrorCode::device, "%s: no images", what);
  }
  std::unique_ptr<DeviceMemory> borrow(const DeviceBuffer&, size_t, const char* tensor) const override {
    fail(ErrorCode::device, "%s: no memory of callers", tensor);
  }
  std::unique_ptr<DeviceMemory> part(const DeviceMemory&, size_t, size_t) const override {
    fail(ErrorCode::device, "no parts");
  }
  std::unique_ptr<Program> compile(const ProgramSource& source) const override {
    if (source.kernel == ends_the_process) std::abort();
    calls.push_back("compile " + source.kernel);
    return std::make_unique<RecordedProgram>();
  }
  std::unique_ptr<Program> load(const ProgramSource&, const std::string&) const override { return nullptr; }
  const std::string& build_options(Language) const override { return no_options; }
  Queue& queue() override { return own_queue; }
  Queue& profiling_queue() override { return own_queue; }
  std::unique_ptr<Queue> new_queue() const override { return std::make_unique<RecordedQueue>(calls); }
  std::unique_ptr<HostEvent> new_host_event() const override { return nullptr; }
  std::unique_ptr<Recording> new_recording() override { return nullptr; }
  GpuHandles handles() const override { return {}; }
};

}  // namespace phonebit::engine::test
