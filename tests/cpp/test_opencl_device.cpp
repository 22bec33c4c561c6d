// Contexts, buffers, programs and their cache on the first OpenCL device, or on the one whose name contains
// what PHONEBIT_TEST_DEVICE says.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "check_error.h"
#include "gpu/program_cache.h"
#include "loader/crc32.h"
#include "opencl/cl_functions.h"
#include "opencl/context.h"
#include "opencl_device.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using namespace phonebit::engine::gpu;
using phonebit::engine::opencl::ClDevice;
using phonebit::engine::opencl::Context;
using phonebit::engine::opencl::devices;

const std::string source =
    "#define FACTOR 3\n"
    "__kernel void scale(__global const int* from, __global int* to) {\n"
    "  to[get_global_id(0)] = FACTOR * from[get_global_id(0)] + 1;\n"
    "}\n";
constexpr size_t count = 100;

const ClDevice* test_device() {
  const char* const wanted = std::getenv("PHONEBIT_TEST_DEVICE");
  for (const ClDevice& device : devices()) {
    if (wanted == nullptr || device.key().find(wanted) != std::string::npos) return &device;
  }
  return nullptr;
}

TEST_CASE("the device is described") {
  if (!has_opencl_device()) return;
  REQUIRE(test_device() != nullptr);
  const ClDevice& device = *test_device();
  MESSAGE(device.key(), "; ", device.vendor, ", ", device.family, "; ", device.version);
  CHECK(device.compute_units > 0);
  CHECK(device.max_work_group_size > 0);
  CHECK(device.max_buffer_bytes > 0);
  CHECK(device.global_bytes > 0);
  CHECK(device.local_bytes > 0);
  CHECK(device.base_align_bytes >= 1);
  CHECK(device.base_align_bytes <= 65536);
  CHECK_MESSAGE((!device.has_images || device.image2d_max_width >= 2048),
                "images have the size that OpenCL guarantees");
  bool is_others = false;
  for (const ClDevice& each : devices()) {
    CHECK_MESSAGE((!each.is_gpu || !is_others), "GPUs come first");
    is_others = is_others || !each.is_gpu;
  }
  const ClDevice again = opencl::describe_device(device.id);
  CHECK(again.key() == device.key());
  CHECK(again.family == device.family);
}

std::vector<int> numbers() {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i * i);
  return values;
}

constexpr size_t bytes = count * sizeof(int);

std::vector<int> download(Context& context, const DeviceMemory& buffer) {
  std::vector<int> values(count);
  context.queue().read(buffer, Region::of_bytes(0, bytes), reinterpret_cast<std::byte*>(values.data()), true,
                       nullptr);
  return values;
}

void bind(Kernel& kernel, const DeviceMemory& from, const DeviceMemory& to) {
  kernel.bind(0, from);
  kernel.bind(1, to);
}

constexpr WorkSize kAll{1, &count, nullptr};

/// Whether the kernel does what its source says.
bool works(Context& context, Kernel& kernel) {
  const std::vector<int> from = numbers();
  const auto input = context.buffer(bytes, from.data(), "input");
  const auto output = context.buffer(bytes, nullptr, "output");
  bind(kernel, *input, *output);
  context.queue().launch(kernel, kAll, nullptr);
  context.queue().finish();
  const std::vector<int> to = download(context, *output);
  for (size_t i = 0; i < count; ++i) {
    if (to[i] != 3 * from[i] + 1) return false;
  }
  return true;
}

void buffers_hold_and_are_refused(const std::shared_ptr<Context>& context) {
  const ClDevice& device = context->facts();
  const std::vector<int> values = numbers();
  const auto buffer = context->buffer(bytes, values.data(), "values");
  CHECK(download(*context, *buffer) == values);
  CHECK_MESSAGE(static_cast<bool>(context->buffer(0, nullptr, "empty")), "a buffer of nothing is a buffer");
  CHECK_MESSAGE(static_cast<bool>(context->buffer(0, values.data(), "empty")), "even from data");
  const size_t too_large = static_cast<size_t>(device.max_buffer_bytes) + 1;
  check_error(ErrorCode::device, {"conv7 weights", std::to_string(too_large)}, "too large",
              [&] { context->buffer(too_large, nullptr, "conv7 weights"); });
  const size_t offset = device.base_align_bytes;
  const auto large = context->buffer(offset + bytes, nullptr, "large");
  const auto part = context->part(*large, offset, bytes);
  context->queue().copy(*buffer, 0, *part, 0, bytes);
  CHECK(download(*context, *part) == values);
  if (offset > 1)
    check_error(ErrorCode::internal, {"not aligned"}, "alignment",
                [&] { context->part(*large, offset + 1, 4); });
  check_error(ErrorCode::internal, {"not inside its buffer"}, "beyond the end",
              [&] { context->part(*large, offset, bytes + 1); });
}

void images_hold_and_are_refused(const std::shared_ptr<Context>& context) {
  const ClDevice& device = context->facts();
  if (!device.has_images) {
    check_error(ErrorCode::device, {"no images"}, "images",
                [&] { context->image(4, 4, nullptr, "weights"); });
    return;
  }
  const std::vector<uint32_t> texels(4 * 5 * 3, 7);
  CHECK_MESSAGE(static_cast<bool>(context->image(5, 3, texels.data(), "weights")), "an image is filled");
  check_error(ErrorCode::device, {"weights", "too large"}, "too wide",
              [&] { context->image(device.image2d_max_width + 1, 1, nullptr, "weights"); });
}

void queues_are_checked(const ClDevice& device, const std::shared_ptr<Context>& context) {
  std::shared_ptr<Context> mine = Context::create(device);
  const GpuHandles own = mine->handles();
  const std::shared_ptr<Context> with_queue = Context::borrow(own);
  const std::shared_ptr<Context> without_queue = Context::borrow({own.context, own.device, nullptr});
  CHECK(with_queue->handles().queue == own.queue);
  CHECK(without_queue->handles().queue != own.queue);
  check_error(ErrorCode::input, {"another context"}, "a foreign queue",
              [&] { Context::borrow({own.context, own.device, context->handles().queue}); });
  check_error(ErrorCode::input, {"null"}, "no context",
              [&] { Context::borrow({nullptr, own.device, nullptr}); });
  opencl::cl_int status = opencl::CL_SUCCESS;
  const opencl::Handle<opencl::cl_command_queue> queue(opencl::api().clCreateCommandQueue(
      mine->get(), device.id, opencl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status));
  if (status == opencl::CL_SUCCESS)
    check_error(ErrorCode::input, {"in-order"}, "an out-of-order queue",
                [&] { Context::borrow({own.context, own.device, queue.get()}); });
  mine.reset();
  ProgramCache cache(with_queue, "");
  const std::unique_ptr<Kernel> kernel = cache.kernel("scale", source);
  CHECK_MESSAGE(works(*with_queue, *kernel), "a borrowed context outlives its owner");

  const std::vector<int> values = numbers();
  const auto from = with_queue->buffer(bytes, values.data(), "from");
  const auto to = with_queue->buffer(bytes, nullptr, "to");
  bind(*kernel, *from, *to);
  Events events;
  with_queue->profiling_queue().launch(*kernel, kAll, &events);
  with_queue->profiling_queue().finish();
  CHECK(events[0]->is_over());
  const EventSpan span = events[0]->span();
  CHECK(span.begin >= span.queued);
  CHECK(span.end >= span.begin);
  CHECK(span.end > 0);
}

/// Recorded kernels run in their order, each time anew.
void recordings_replay(const std::shared_ptr<Context>& context) {
  const std::unique_ptr<Recording> recording = context->new_recording();
  CHECK((recording != nullptr) ==
        (context->facts().has_command_buffer || context->facts().has_recordable_queue));
  if (!recording) {
    MESSAGE("nothing can be recorded");
    return;
  }
  ProgramCache cache(context, "");
  constexpr size_t kernel_count = 5;
  std::vector<std::unique_ptr<DeviceMemory>> buffers;
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (size_t i = 0; i <= kernel_count; ++i) buffers.push_back(context->buffer(bytes, nullptr, "numbers"));
  for (size_t i = 0; i < kernel_count; ++i) {
    kernels.push_back(cache.kernel("scale", source));
    bind(*kernels[i], *buffers[i], *buffers[i + 1]);
    CHECK(recording->add(*kernels[i], kAll));
  }
  CHECK(recording->end());
  for (int round = 0; round < 5; ++round) {
    const std::vector<int> changed(count, round);
    context->queue().write(*buffers[0], Region::of_bytes(0, bytes),
                           reinterpret_cast<const std::byte*>(changed.data()), true);
    recording->enqueue();
    int value = round;
    for (size_t i = 0; i < kernel_count; ++i) value = 3 * value + 1;
    CHECK_MESSAGE(download(*context, *buffers[kernel_count]) == std::vector<int>(count, value), "replay ",
                  round);
  }
}

void build_failures_are_explained(const std::shared_ptr<Context>& context) {
  ProgramCache cache(context, "");
  const std::vector<std::string> parts = {
      "kernel scale",        "clBuildProgram", "CL_BUILD_PROGRAM_FAILURE (-11)",
      context->facts().name, "-cl-std=CL1.2",  "unknown_function_of_mine"};
  for (int round = 0; round < 2; ++round)
    check_error(ErrorCode::device, parts, "a build failure",
                [&] { cache.kernel("scale", "__kernel void scale() { unknown_function_of_mine int; }\n"); });
  check_error(ErrorCode::device, {"kernel missing", "CL_INVALID_KERNEL_NAME"}, "a kernel that is not there",
              [&] { cache.kernel("missing", source); });
  const std::unique_ptr<Kernel> kernel = cache.kernel("scale", source);
  CHECK_MESSAGE(works(*context, *kernel), "a cache works after failures");
}

std::string only_file(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    found.push_back(entry.path().string());
  CHECK(found.size() == 1);
  return found.empty() ? "" : found[0];
}

/// A new cache on a directory, as the next process has it.
StartupInfo use(const std::shared_ptr<Context>& context, const std::string& directory,
                const std::string& what) {
  ProgramCache cache(context, directory);
  const std::unique_ptr<Kernel> first = cache.kernel("scale", source);
  const std::unique_ptr<Kernel> second = cache.kernel("scale", source);
  CHECK(first.get() != second.get());
  CHECK_MESSAGE(works(*context, *first), what, ": the kernel works");
  const StartupInfo result = cache.statistics();
  CHECK_MESSAGE(result.programs_built + result.programs_loaded == 1, what, ": the program is made once");
  return result;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The entry with another binary of the same length and a checksum that fits: only the driver can tell.
std::string with_nonsense_binary(std::string file) {
  uint64_t sizes[2];
  std::memcpy(sizes, &file[16], sizeof sizes);
  for (size_t at = 32 + sizes[0]; at < file.size(); ++at) file[at] = static_cast<char>(at * 7);
  const uint32_t crc = loader::crc32(0, &file[16], file.size() - 16);
  std::memcpy(&file[12], &crc, sizeof crc);
  return file;
}

void programs_are_kept(const ClDevice& device, bool by_the_driver) {
  ClDevice other = device;
  other.keeps_programs = by_the_driver;
  const std::shared_ptr<Context> context = Context::create(other);
  const TemporaryFolder own;
  const std::string& folder = own.path();
  const std::string directory = folder + "/cache";
  const StartupInfo first = use(context, directory, "first");
  CHECK(first.programs_built == 1);
  CHECK(first.cache_entries_rejected == 0);
  CHECK(first.build_ms > 0.0);
  const StartupInfo second = use(context, directory, "second");
  CHECK(second.programs_built == 0);
  CHECK(second.programs_loaded == 1);
  CHECK(second.build_ms == 0.0);

  const std::string path = only_file(directory);
  const std::string file = read(path);
  uint64_t sizes[2];
  std::memcpy(sizes, &file[16], sizeof sizes);
  std::string other_key = file;
  other_key[40] = static_cast<char>(other_key[40] ^ 1);
  const uint32_t crc = loader::crc32(0, &other_key[16], other_key.size() - 16);
  std::memcpy(&other_key[12], &crc, sizeof crc);
  std::vector<std::pair<std::string, std::string>> damages = {
      {"an empty file", ""},
      {"a truncated file", file.substr(0, file.size() - 1)},
      {"another key", other_key},
      {"a refused binary", with_nonsense_binary(file)}};
  for (const size_t at :
       {size_t{0}, size_t{8}, size_t{32}, static_cast<size_t>(32 + sizes[0]), file.size() - 1}) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    damages.emplace_back("byte " + std::to_string(at) + " flipped", flipped);
  }
  for (const auto& damage : damages) {
    const std::string& what = damage.first;
    write(path, damage.second);
    const StartupInfo found = use(context, directory, what);
    CHECK_MESSAGE(found.programs_built == 1, what, " is found and built again");
    CHECK_MESSAGE(found.cache_entries_rejected == 1, what, " is found and built again");
    CHECK_MESSAGE(found.programs_loaded == 0, what, " is found and built again");
    const StartupInfo repaired = use(context, directory, what + ", repaired");
    CHECK_MESSAGE(repaired.programs_built == 0, what, " is overwritten");
    CHECK_MESSAGE(repaired.programs_loaded == 1, what, " is overwritten");
  }
  CHECK(use(context, "", "none").programs_built == 1);
  // Below a file not even root can make one.
  write(folder + "/file", "x");
  CHECK(use(context, folder + "/file/cache", "impossible").programs_built == 1);
  CHECK(use(context, folder + "/file", "a file").programs_built == 1);
}

void threads_build_at_once(const std::shared_ptr<Context>& context) {
  const TemporaryFolder folder;
  ProgramCache shared(context, folder.path());
  ProgramCache another(context, folder.path());
  const auto work = [&](ProgramCache& cache) {
    for (int i = 0; i < 3; ++i) {
      const std::unique_ptr<Kernel> kernel =
          cache.kernel("scale", source + "// text " + std::to_string(i) + "\n");
      CHECK_MESSAGE(static_cast<bool>(kernel), "each thread gets its kernel");
    }
  };
  std::vector<std::thread> threads;
  for (ProgramCache* cache : {&shared, &shared, &another, &another})
    threads.emplace_back(work, std::ref(*cache));
  for (std::thread& thread : threads) thread.join();
  for (const ProgramCache* cache : {&shared, &another}) {
    const StartupInfo result = cache->statistics();
    CHECK(result.programs_built + result.programs_loaded == 3);
    CHECK(result.cache_entries_rejected == 0);
  }
}

TEST_CASE("a context") {
  if (!has_opencl_device()) return;
  const ClDevice* const device = test_device();
  REQUIRE(device != nullptr);
  const std::shared_ptr<Context> context = Context::create(*device);
  SUBCASE("buffers hold and are refused") { buffers_hold_and_are_refused(context); }
  SUBCASE("images hold and are refused") { images_hold_and_are_refused(context); }
  SUBCASE("queues are checked") { queues_are_checked(*device, context); }
  SUBCASE("recordings replay") { recordings_replay(context); }
  SUBCASE("build failures are explained") { build_failures_are_explained(context); }
  SUBCASE("programs are kept on disk") { programs_are_kept(*device, false); }
  SUBCASE("programs are kept by the driver") { programs_are_kept(*device, true); }
  SUBCASE("threads build at once") { threads_build_at_once(context); }
}

}  // namespace
