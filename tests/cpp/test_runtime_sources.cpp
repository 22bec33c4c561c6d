// A file loads the same from a path, from memory and from a descriptor, and bad ones are refused by name.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check_error.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "memory/aligned_buffer.h"
#include "network_buffers.h"
#include "test_runtime_model.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;

const Bytes model = small_model();

Content results_of(Network network) {
  const Content in = random_inputs(network.inputs(), 2);
  Content out = room_for(network.outputs(), 2);
  network.forward(inputs_of(in), outputs_of(out), 2);
  CHECK(network.memory().file_bytes == model.size());
  return out;
}

/// A file in a folder of its own, open for reading.
class File {
 public:
  explicit File(const Bytes& bytes) {
    path_ = std::filesystem::temp_directory_path() / ("phonebit_sources_" + std::to_string(::getpid()));
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(descriptor_ >= 0);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
    std::filesystem::remove(path_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  std::string path() const { return path_.string(); }
  void close() { ::close(std::exchange(descriptor_, -1)); }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// `before` bytes of something else, the model, `after` bytes of something else.
Bytes surrounded(size_t before, size_t after) {
  Bytes bytes(before, 0xEE);
  bytes.insert(bytes.end(), model.begin(), model.end());
  bytes.insert(bytes.end(), after, 0xEE);
  return bytes;
}

/// What all the others are to give.
const Content& results_of_path() {
  static const Content results = results_of(Network::load(File(model).path()));
  return results;
}

Options with(bool in_place) {
  Options options;
  options.in_place = in_place;
  return options;
}

TEST_CASE("loads from memory") {
  const Content& expected = results_of_path();
  memory::AlignedBuffer room(model.size() + 64, "a test");
  for (const bool in_place : {false, true}) {
    for (const size_t shift : {0, 1, 4, 63}) {
      std::memcpy(room.data() + shift, model.data(), model.size());
      Network network = Network::load_memory(room.data() + shift, model.size(), with(in_place));
      // Of a copy, the caller's bytes do not matter.
      if (!in_place || shift != 0) std::memset(room.data(), 0, room.size());
      CHECK_MESSAGE(results_of(std::move(network)) == expected, "from memory at ", shift);
    }
  }
  Options small;
  small.max_memory_bytes = model.size() - 1;
  check_error(ErrorCode::format, {std::to_string(model.size()) + " bytes", "memory limit"}, "a large file",
              [&] { Network::load_memory(model.data(), model.size(), small); });
  check_error(ErrorCode::input, {"memory of 100 bytes", "null"}, "null",
              [] { Network::load_memory(nullptr, 100); });
  check_error(ErrorCode::format, {"memory of 0 bytes", "empty"}, "no bytes",
              [] { Network::load_memory(model.data(), 0); });
  check_error(ErrorCode::format, {"memory of 70 bytes"}, "cut short",
              [] { Network::load_memory(model.data(), 70); });
}

TEST_CASE("loads from descriptors") {
  const Content& expected = results_of_path();
  for (const size_t before : {size_t{0}, size_t{64}, size_t{4096}, size_t{5000}, size_t{8192 + 192}}) {
    File file(surrounded(before, 100));
    const auto offset = static_cast<int64_t>(before);
    const std::string where = "from offset " + std::to_string(before);
    const auto size = static_cast<int64_t>(model.size());
    Network copied = Network::load_descriptor(file.descriptor(), offset, size);
    Network mapped = Network::load_descriptor(file.descriptor(), offset, size, with(true));
    CHECK_MESSAGE(::lseek(file.descriptor(), 0, SEEK_CUR) == 0, where, ": the position stays");
    CHECK_MESSAGE(results_of(std::move(mapped)) == expected, where, ", in place");
    file.close();
    std::filesystem::resize_file(file.path(), 0);
    CHECK_MESSAGE(results_of(std::move(copied)) == expected, where, ", a file that was cut short");
  }
  const File to_the_end(surrounded(128, 0));
  CHECK(results_of(Network::load_descriptor(to_the_end.descriptor(), 128, 0)) == expected);
  CHECK(results_of(Network::load_descriptor(to_the_end.descriptor(), 128, 0)) == expected);
}

TEST_CASE("refuses bad descriptors") {
  const File file(model);
  const auto size = static_cast<int64_t>(model.size());
  const std::string name = "descriptor " + std::to_string(file.descriptor());
  const auto refused = [&](int64_t offset, int64_t bytes, ErrorCode code, const std::string& part) {
    check_error(code, {name, part}, "offset " + std::to_string(offset) + ", bytes " + std::to_string(bytes),
                [&] { Network::load_descriptor(file.descriptor(), offset, bytes); });
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  refused(-1, 0, ErrorCode::input, "offset -1");
  refused(size + 1, 0, ErrorCode::input, "which has " + std::to_string(size));
  refused(kMax, kMax, ErrorCode::input, "offset");
  refused(0, size + 1, ErrorCode::input, std::to_string(size + 1) + " bytes");
  refused(64, kMax, ErrorCode::input, std::to_string(kMax) + " bytes");
  refused(0, -1, ErrorCode::input, "-1 bytes");
  refused(size, 0, ErrorCode::format, "empty");
  refused(64, 0, ErrorCode::format, "");

  check_error(ErrorCode::input, {"descriptor -1", "cannot inspect"}, "no descriptor",
              [] { Network::load_descriptor(-1, 0, 0); });
  int ends[2] = {-1, -1};
  CHECK(::pipe(ends) == 0);
  check_error(ErrorCode::input, {"not a regular file"}, "a pipe",
              [&] { Network::load_descriptor(ends[0], 0, 0); });
  const int folder = ::open("/", O_RDONLY | O_CLOEXEC);
  check_error(ErrorCode::input, {"directory"}, "a folder", [&] { Network::load_descriptor(folder, 0, 0); });
  const int write_only = ::open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  check_error(ErrorCode::input, {"cannot read"}, "one that cannot be read",
              [&] { Network::load_descriptor(write_only, 0, 0); });
  for (const int descriptor : {ends[0], ends[1], folder, write_only}) ::close(descriptor);
}

TEST_CASE("device names") {
  Options options;
  const auto load = [&](const std::string& device) {
    options.device = device;
    return Network::load_memory(model.data(), model.size(), options);
  };
  for (const IsaInfo& isa : instruction_sets()) {
    if (isa.supported) CHECK(load("cpu:" + isa.name).device() == "cpu:" + isa.name);
  }
  check_error(ErrorCode::device, {"'mmx'", "scalar"}, "no instruction set", [&] { load("cpu:mmx"); });
  for (const char* name : {"", "cpu:", "CPU", "npu", "gpux", "cpu+gpu", "auto+cpu", "gpu+",
                           "gpu+cpu:", "cpu+cpu", "gpu+cpu+cpu", "gpu+auto", "+cpu"})
    check_error(ErrorCode::input, {std::string("device '") + name + "'", "expected 'auto'"}, name,
                [&] { load(name); });
  const std::string last = instruction_sets().back().name;
  if (gpu_devices().empty()) return;
  for (const char* name : {"gpu:", "gpu:x", "gpu:1x", "gpu:-1", "gpu:1:2"})
    check_error(ErrorCode::input, {std::string("device '") + name + "'"}, name, [&] { load(name); });
  const std::string both = load("gpu:0+cpu:" + last).device();
  CHECK_MESSAGE(both.rfind("gpu:0 ", 0) == 0, both);
  CHECK(both.c_str() == doctest::Contains(("+ cpu:" + last).c_str()));
}

}  // namespace
