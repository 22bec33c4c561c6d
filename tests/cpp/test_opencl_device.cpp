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
#include "loader/crc32.h"
#include "opencl/cl_functions.h"
#include "opencl/context.h"
#include "opencl/program_cache.h"
#include "opencl/recording.h"
#include "opencl_device.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using namespace phonebit::engine::opencl;

const std::string source =
    "#define FACTOR 3\n"
    "__kernel void scale(__global const int* from, __global int* to) {\n"
    "  to[get_global_id(0)] = FACTOR * from[get_global_id(0)] + 1;\n"
    "}\n";
constexpr size_t count = 100;

const Device* test_device() {
  const char* const wanted = std::getenv("PHONEBIT_TEST_DEVICE");
  for (const Device& device : devices()) {
    if (wanted == nullptr || device.key().find(wanted) != std::string::npos) return &device;
  }
  return nullptr;
}

TEST_CASE("the device is described") {
  if (!has_opencl_device()) return;
  REQUIRE(test_device() != nullptr);
  const Device& device = *test_device();
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
  for (const Device& each : devices()) {
    CHECK_MESSAGE((!each.is_gpu || !is_others), "GPUs come first");
    is_others = is_others || !each.is_gpu;
  }
  const Device again = describe_device(device.id);
  CHECK(again.key() == device.key());
  CHECK(again.family == device.family);
}

std::vector<int> numbers() {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i * i);
  return values;
}

std::vector<int> download(const Context& context, cl_mem buffer) {
  std::vector<int> values(count);
  check(api().clEnqueueReadBuffer(context.queue(), buffer, CL_TRUE, 0, count * sizeof(int), values.data(), 0,
                                  nullptr, nullptr),
        "clEnqueueReadBuffer");
  return values;
}

void set_arguments(cl_kernel kernel, cl_mem from, cl_mem to) {
  check(api().clSetKernelArg(kernel, 0, sizeof from, &from), "clSetKernelArg");
  check(api().clSetKernelArg(kernel, 1, sizeof to, &to), "clSetKernelArg");
}

/// Whether the kernel does what its source says.
bool works(const Context& context, cl_kernel kernel, cl_command_queue queue) {
  const std::vector<int> from = numbers();
  const Handle<cl_mem> input = context.buffer(count * sizeof(int), from.data(), "input");
  const Handle<cl_mem> output = context.buffer(count * sizeof(int), nullptr, "output");
  set_arguments(kernel, input.get(), output.get());
  check(api().clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  check(api().clFinish(queue), "clFinish");
  const std::vector<int> to = download(context, output.get());
  for (size_t i = 0; i < count; ++i) {
    if (to[i] != 3 * from[i] + 1) return false;
  }
  return true;
}

void buffers_hold_and_are_refused(const std::shared_ptr<Context>& context) {
  const Device& device = context->device();
  const std::vector<int> values = numbers();
  const Handle<cl_mem> buffer = context->buffer(count * sizeof(int), values.data(), "values");
  CHECK(download(*context, buffer.get()) == values);
  CHECK_MESSAGE(static_cast<bool>(context->buffer(0, nullptr, "empty")), "a buffer of nothing is a buffer");
  CHECK_MESSAGE(static_cast<bool>(context->buffer(0, values.data(), "empty")), "even from data");
  const size_t too_large = static_cast<size_t>(device.max_buffer_bytes) + 1;
  check_error(ErrorCode::device, {"conv7 weights", std::to_string(too_large)}, "too large",
              [&] { context->buffer(too_large, nullptr, "conv7 weights"); });
  const size_t offset = device.base_align_bytes;
  const Handle<cl_mem> large = context->buffer(offset + count * sizeof(int), nullptr, "large");
  const Handle<cl_mem> part = context->sub_buffer(large.get(), offset, count * sizeof(int));
  check(api().clEnqueueCopyBuffer(context->queue(), buffer.get(), part.get(), 0, 0, count * sizeof(int), 0,
                                  nullptr, nullptr),
        "clEnqueueCopyBuffer");
  CHECK(download(*context, part.get()) == values);
  if (offset > 1)
    check_error(ErrorCode::internal, {"not aligned"}, "alignment",
                [&] { context->sub_buffer(large.get(), offset + 1, 4); });
  check_error(ErrorCode::internal, {"not inside its buffer"}, "beyond the end",
              [&] { context->sub_buffer(large.get(), offset, count * sizeof(int) + 1); });
}

void images_hold_and_are_refused(const std::shared_ptr<Context>& context) {
  const Device& device = context->device();
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

void queues_are_checked(const Device& device, const std::shared_ptr<Context>& context) {
  std::shared_ptr<Context> mine = Context::create(device);
  const std::shared_ptr<Context> with_queue = Context::borrow(mine->get(), device.id, mine->queue());
  const std::shared_ptr<Context> without_queue = Context::borrow(mine->get(), device.id, nullptr);
  CHECK(with_queue->queue() == mine->queue());
  CHECK(without_queue->queue() != mine->queue());
  check_error(ErrorCode::input, {"another context"}, "a foreign queue",
              [&] { Context::borrow(mine->get(), device.id, context->queue()); });
  check_error(ErrorCode::input, {"null"}, "no context",
              [&] { Context::borrow(nullptr, device.id, nullptr); });
  cl_int status = CL_SUCCESS;
  const Handle<cl_command_queue> queue(
      api().clCreateCommandQueue(mine->get(), device.id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status));
  if (status == CL_SUCCESS)
    check_error(ErrorCode::input, {"in-order"}, "an out-of-order queue",
                [&] { Context::borrow(mine->get(), device.id, queue.get()); });
  mine.reset();
  ProgramCache cache(with_queue, "");
  const Handle<cl_kernel> kernel = cache.kernel("scale", source);
  CHECK_MESSAGE(works(*with_queue, kernel.get(), with_queue->queue()),
                "a borrowed context outlives its owner");

  const std::vector<int> values = numbers();
  const Handle<cl_mem> from = with_queue->buffer(count * sizeof(int), values.data(), "from");
  const Handle<cl_mem> to = with_queue->buffer(count * sizeof(int), nullptr, "to");
  set_arguments(kernel.get(), from.get(), to.get());
  Handle<cl_event> event;
  check(api().clEnqueueNDRangeKernel(with_queue->profiling_queue(), kernel.get(), 1, nullptr, &count, nullptr,
                                     0, nullptr, event.out()),
        "clEnqueueNDRangeKernel");
  check(api().clFinish(with_queue->profiling_queue()), "clFinish");
  cl_ulong start = 0;
  cl_ulong end = 0;
  check(api().clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr),
        "clGetEventProfilingInfo");
  check(api().clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr),
        "clGetEventProfilingInfo");
  CHECK(end >= start);
  CHECK(end > 0);
}

/// Recorded kernels run in their order, each time anew.
void recordings_replay(const std::shared_ptr<Context>& context) {
  const std::unique_ptr<Recording> recording = new_recording(*context);
  CHECK((recording != nullptr) ==
        (context->device().has_command_buffer || context->device().has_recordable_queue));
  if (!recording) {
    MESSAGE("nothing can be recorded");
    return;
  }
  ProgramCache cache(context, "");
  constexpr size_t bytes = count * sizeof(int), kernel_count = 5;
  std::vector<Handle<cl_mem>> buffers;
  std::vector<Handle<cl_kernel>> kernels;
  for (size_t i = 0; i <= kernel_count; ++i) buffers.push_back(context->buffer(bytes, nullptr, "numbers"));
  for (size_t i = 0; i < kernel_count; ++i) {
    kernels.push_back(cache.kernel("scale", source));
    set_arguments(kernels[i].get(), buffers[i].get(), buffers[i + 1].get());
    check(recording->add(kernels[i].get(), 1, &count, nullptr), "add");
  }
  check(recording->end(), "end");
  for (int round = 0; round < 5; ++round) {
    const std::vector<int> changed(count, round);
    check(api().clEnqueueWriteBuffer(context->queue(), buffers[0].get(), CL_TRUE, 0, bytes, changed.data(), 0,
                                     nullptr, nullptr),
          "clEnqueueWriteBuffer");
    check(recording->enqueue(), "enqueue");
    int value = round;
    for (size_t i = 0; i < kernel_count; ++i) value = 3 * value + 1;
    CHECK_MESSAGE(download(*context, buffers[kernel_count].get()) == std::vector<int>(count, value),
                  "replay ", round);
  }
}

void build_failures_are_explained(const std::shared_ptr<Context>& context) {
  ProgramCache cache(context, "");
  const std::vector<std::string> parts = {
      "kernel scale",         "clBuildProgram", "CL_BUILD_PROGRAM_FAILURE (-11)",
      context->device().name, "-cl-std=CL1.2",  "unknown_function_of_mine"};
  for (int round = 0; round < 2; ++round)
    check_error(ErrorCode::device, parts, "a build failure",
                [&] { cache.kernel("scale", "__kernel void scale() { unknown_function_of_mine int; }\n"); });
  check_error(ErrorCode::device, {"kernel missing", "CL_INVALID_KERNEL_NAME"}, "a kernel that is not there",
              [&] { cache.kernel("missing", source); });
  const Handle<cl_kernel> kernel = cache.kernel("scale", source);
  CHECK_MESSAGE(works(*context, kernel.get(), context->queue()), "a cache works after failures");
}

std::string only_file(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    found.push_back(entry.path().string());
  CHECK(found.size() == 1);
  return found.empty() ? "" : found[0];
}

/// A new cache on a directory, as the next process has it.
ProgramStatistics use(const std::shared_ptr<Context>& context, const std::string& directory,
                      const std::string& what) {
  ProgramCache cache(context, directory);
  const Handle<cl_kernel> first = cache.kernel("scale", source);
  const Handle<cl_kernel> second = cache.kernel("scale", source);
  CHECK(first.get() != second.get());
  CHECK_MESSAGE(works(*context, first.get(), context->queue()), what, ": the kernel works");
  const ProgramStatistics result = cache.statistics();
  CHECK_MESSAGE(result.built + result.loaded == 1, what, ": the program is made once");
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

void programs_are_kept(const Device& device, bool by_the_driver) {
  Device other = device;
  other.keeps_programs = by_the_driver;
  const std::shared_ptr<Context> context = Context::create(other);
  const TemporaryFolder own;
  const std::string& folder = own.path();
  const std::string directory = folder + "/cache";
  const ProgramStatistics first = use(context, directory, "first");
  CHECK(first.built == 1);
  CHECK(first.rejected == 0);
  CHECK(first.build_ms > 0.0);
  const ProgramStatistics second = use(context, directory, "second");
  CHECK(second.built == 0);
  CHECK(second.loaded == 1);
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
    const ProgramStatistics found = use(context, directory, what);
    CHECK_MESSAGE(found.built == 1, what, " is found and built again");
    CHECK_MESSAGE(found.rejected == 1, what, " is found and built again");
    CHECK_MESSAGE(found.loaded == 0, what, " is found and built again");
    const ProgramStatistics repaired = use(context, directory, what + ", repaired");
    CHECK_MESSAGE(repaired.built == 0, what, " is overwritten");
    CHECK_MESSAGE(repaired.loaded == 1, what, " is overwritten");
  }
  CHECK(use(context, "", "none").built == 1);
  // Below a file not even root can make one.
  write(folder + "/file", "x");
  CHECK(use(context, folder + "/file/cache", "impossible").built == 1);
  CHECK(use(context, folder + "/file", "a file").built == 1);
}

void threads_build_at_once(const std::shared_ptr<Context>& context) {
  const TemporaryFolder folder;
  ProgramCache shared(context, folder.path());
  ProgramCache another(context, folder.path());
  const auto work = [&](ProgramCache& cache) {
    for (int i = 0; i < 3; ++i) {
      const Handle<cl_kernel> kernel = cache.kernel("scale", source + "// text " + std::to_string(i) + "\n");
      CHECK_MESSAGE(static_cast<bool>(kernel), "each thread gets its kernel");
    }
  };
  std::vector<std::thread> threads;
  for (ProgramCache* cache : {&shared, &shared, &another, &another})
    threads.emplace_back(work, std::ref(*cache));
  for (std::thread& thread : threads) thread.join();
  for (const ProgramCache* cache : {&shared, &another}) {
    const ProgramStatistics result = cache->statistics();
    CHECK(result.built + result.loaded == 3);
    CHECK(result.rejected == 0);
  }
}

TEST_CASE("a context") {
  if (!has_opencl_device()) return;
  const Device* const device = test_device();
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
