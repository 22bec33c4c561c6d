// Contexts, buffers, programs and their cache on the first OpenCL device, or on the one whose name contains
// what PHONEBIT_TEST_DEVICE says. Passes without a device.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "claims.h"
#include "loader/crc32.h"
#include "opencl/cl_functions.h"
#include "opencl/context.h"
#include "opencl/program_cache.h"

namespace {

using namespace phonebit::engine::opencl;
using phonebit::engine::ErrorCode;

std::string folder;

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

void device_is_described(const Device& device) {
  std::printf("%s; %s, %s; %s\n", device.key().c_str(), device.vendor.c_str(), device.family.c_str(),
              device.version.c_str());
  expect(device.compute_units > 0 && device.max_work_group_size > 0, "a device has units and groups");
  expect(device.max_buffer_bytes > 0 && device.global_bytes > 0 && device.local_bytes > 0, "and memory");
  expect(device.base_align_bytes >= 1 && device.base_align_bytes <= 65536,
         "and an alignment of bytes, not bits");
  expect(!device.has_images || device.image2d_max_width >= 2048,
         "images have the size that OpenCL guarantees");
  expect(device.has_command_buffer ==
             (device.has_command_buffer && command_buffer_api(device.platform) != nullptr),
         "command buffers come with their functions");
  bool is_others = false;
  for (const Device& each : devices()) {
    expect(!each.is_gpu || !is_others, "GPUs come first");
    is_others = is_others || !each.is_gpu;
  }
  const Device again = describe_device(device.id);
  expect(again.key() == device.key() && again.family == device.family,
         "a device is described the same again");
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
  expect(download(*context, buffer.get()) == values, "a buffer is filled");
  expect(static_cast<bool>(context->buffer(0, nullptr, "empty")), "a buffer of nothing is a buffer");
  expect(static_cast<bool>(context->buffer(0, values.data(), "empty")), "even from data");
  const size_t too_large = static_cast<size_t>(device.max_buffer_bytes) + 1;
  expect_error(ErrorCode::device, {"conv7 weights", std::to_string(too_large)}, "too large",
               [&] { context->buffer(too_large, nullptr, "conv7 weights"); });
  const size_t offset = device.base_align_bytes;
  const Handle<cl_mem> large = context->buffer(offset + count * sizeof(int), nullptr, "large");
  const Handle<cl_mem> part = context->sub_buffer(large.get(), offset, count * sizeof(int));
  check(api().clEnqueueCopyBuffer(context->queue(), buffer.get(), part.get(), 0, 0, count * sizeof(int), 0,
                                  nullptr, nullptr),
        "clEnqueueCopyBuffer");
  expect(download(*context, part.get()) == values, "a part of a buffer is a buffer");
  if (offset > 1)
    expect_error(ErrorCode::internal, {"not aligned"}, "alignment",
                 [&] { context->sub_buffer(large.get(), offset + 1, 4); });
  expect_error(ErrorCode::internal, {"not inside its buffer"}, "beyond the end",
               [&] { context->sub_buffer(large.get(), offset, count * sizeof(int) + 1); });
}

void images_hold_and_are_refused(const std::shared_ptr<Context>& context) {
  const Device& device = context->device();
  if (!device.has_images) {
    expect_error(ErrorCode::device, {"no images"}, "images",
                 [&] { context->image(4, 4, nullptr, "weights"); });
    return;
  }
  const std::vector<uint32_t> texels(4 * 5 * 3, 7);
  expect(static_cast<bool>(context->image(5, 3, texels.data(), "weights")), "an image is filled");
  expect_error(ErrorCode::device, {"weights", "too large"}, "too wide",
               [&] { context->image(device.image2d_max_width + 1, 1, nullptr, "weights"); });
}

void queues_are_checked(const Device& device, const std::shared_ptr<Context>& context) {
  std::shared_ptr<Context> mine = Context::create(device);
  const std::shared_ptr<Context> with_queue = Context::borrow(mine->get(), device.id, mine->queue());
  const std::shared_ptr<Context> without_queue = Context::borrow(mine->get(), device.id, nullptr);
  expect(with_queue->queue() == mine->queue() && without_queue->queue() != mine->queue(),
         "a queue is borrowed");
  expect_error(ErrorCode::input, {"another context"}, "a foreign queue",
               [&] { Context::borrow(mine->get(), device.id, context->queue()); });
  expect_error(ErrorCode::input, {"null"}, "no context",
               [&] { Context::borrow(nullptr, device.id, nullptr); });
  cl_int status = CL_SUCCESS;
  const Handle<cl_command_queue> queue(
      api().clCreateCommandQueue(mine->get(), device.id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status));
  if (status == CL_SUCCESS)
    expect_error(ErrorCode::input, {"in-order"}, "an out-of-order queue",
                 [&] { Context::borrow(mine->get(), device.id, queue.get()); });
  mine.reset();
  ProgramCache cache(with_queue, "");
  const Handle<cl_kernel> kernel = cache.kernel("scale", source);
  expect(works(*with_queue, kernel.get(), with_queue->queue()), "a borrowed context outlives its owner");

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
  expect(end >= start && end > 0, "the profiling queue records times");
}

/// Recorded commands run in their order, each time anew.
void command_buffers_replay(const std::shared_ptr<Context>& context) {
  if (!context->device().has_command_buffer) {
    std::printf("skipped: no cl_khr_command_buffer\n");
    return;
  }
  const CommandBufferApi& commands = *command_buffer_api(context->device().platform);
  ProgramCache cache(context, "");
  const std::vector<int> values = numbers();
  constexpr size_t bytes = count * sizeof(int);
  const Handle<cl_mem> input = context->buffer(bytes, values.data(), "input");
  const Handle<cl_mem> middle = context->buffer(bytes, nullptr, "middle");
  const Handle<cl_mem> output = context->buffer(bytes, nullptr, "output");
  const Handle<cl_kernel> first = cache.kernel("scale", source);
  const Handle<cl_kernel> second = cache.kernel("scale", source);
  set_arguments(first.get(), input.get(), middle.get());
  set_arguments(second.get(), middle.get(), output.get());
  cl_int status = CL_SUCCESS;
  const Handle<cl_command_buffer> buffer(commands.create(context->queue(), &status));
  check(status, "clCreateCommandBufferKHR");
  check(commands.kernel(buffer.get(), first.get(), 1, nullptr, &count, nullptr), "clCommandNDRangeKernelKHR");
  check(commands.kernel(buffer.get(), second.get(), 1, nullptr, &count, nullptr),
        "clCommandNDRangeKernelKHR");
  check(commands.finalize(buffer.get()), "clFinalizeCommandBufferKHR");
  for (int round = 0; round < 5; ++round) {
    const std::vector<int> changed(count, round);
    check(api().clEnqueueWriteBuffer(context->queue(), input.get(), CL_TRUE, 0, bytes, changed.data(), 0,
                                     nullptr, nullptr),
          "clEnqueueWriteBuffer");
    check(commands.enqueue(buffer.get()), "clEnqueueCommandBufferKHR");
    const std::vector<int> expected(count, 3 * (3 * round + 1) + 1);
    expect(download(*context, output.get()) == expected, "replay " + std::to_string(round));
  }
}

void build_failures_are_explained(const std::shared_ptr<Context>& context) {
  ProgramCache cache(context, "");
  const std::vector<std::string> parts = {
      "kernel scale",         "clBuildProgram", "CL_BUILD_PROGRAM_FAILURE (-11)",
      context->device().name, "-cl-std=CL1.2",  "unknown_function_of_mine"};
  for (int round = 0; round < 2; ++round)
    expect_error(ErrorCode::device, parts, "a build failure",
                 [&] { cache.kernel("scale", "__kernel void scale() { unknown_function_of_mine int; }\n"); });
  expect_error(ErrorCode::device, {"kernel missing", "CL_INVALID_KERNEL_NAME"}, "a kernel that is not there",
               [&] { cache.kernel("missing", source); });
  const Handle<cl_kernel> kernel = cache.kernel("scale", source);
  expect(works(*context, kernel.get(), context->queue()), "a cache works after failures");
}

std::string only_file(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    found.push_back(entry.path().string());
  expect(found.size() == 1, "one program is one file");
  return found.empty() ? "" : found[0];
}

/// A new cache on a directory, as the next process has it.
ProgramStatistics use(const std::shared_ptr<Context>& context, const std::string& directory,
                      const std::string& what) {
  ProgramCache cache(context, directory);
  const Handle<cl_kernel> first = cache.kernel("scale", source);
  const Handle<cl_kernel> second = cache.kernel("scale", source);
  expect(first.get() != second.get(), "each call gives a kernel of its own");
  expect(works(*context, first.get(), context->queue()), what + ": the kernel works");
  const ProgramStatistics result = cache.statistics();
  expect(result.built + result.loaded == 1, what + ": the program is made once");
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
  const uint32_t crc = phonebit::engine::loader::crc32(0, &file[16], file.size() - 16);
  std::memcpy(&file[12], &crc, sizeof crc);
  return file;
}

void programs_are_kept_on_disk(const std::shared_ptr<Context>& context) {
  const std::string directory = folder + "/cache";
  const ProgramStatistics first = use(context, directory, "first");
  expect(first.built == 1 && first.rejected == 0 && first.build_ms > 0.0, "the first process builds");
  const ProgramStatistics second = use(context, directory, "second");
  expect(second.built == 0 && second.loaded == 1 && second.build_ms == 0.0,
         "the second loads and builds nothing");

  const std::string path = only_file(directory);
  const std::string file = read(path);
  uint64_t sizes[2];
  std::memcpy(sizes, &file[16], sizeof sizes);
  std::string other_key = file;
  other_key[40] = static_cast<char>(other_key[40] ^ 1);
  const uint32_t crc = phonebit::engine::loader::crc32(0, &other_key[16], other_key.size() - 16);
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
  for (const auto& [what, damaged] : damages) {
    write(path, damaged);
    const ProgramStatistics found = use(context, directory, what);
    expect(found.built == 1 && found.rejected == 1 && found.loaded == 0, what + " is found and built again");
    const ProgramStatistics repaired = use(context, directory, what + ", repaired");
    expect(repaired.built == 0 && repaired.loaded == 1, what + " is overwritten");
  }
  expect(use(context, "", "none").built == 1, "no folder: built each time");
  // Below a file not even root can make one.
  write(folder + "/file", "x");
  expect(use(context, folder + "/file/cache", "impossible").built == 1, "an impossible folder does no harm");
  expect(use(context, folder + "/file", "a file").built == 1, "nor does a file in its place");
}

void threads_build_at_once(const std::shared_ptr<Context>& context) {
  ProgramCache shared(context, folder + "/threads");
  ProgramCache another(context, folder + "/threads");
  const auto work = [&](ProgramCache& cache) {
    for (int i = 0; i < 3; ++i) {
      const Handle<cl_kernel> kernel = cache.kernel("scale", source + "// text " + std::to_string(i) + "\n");
      expect(static_cast<bool>(kernel), "each thread gets its kernel");
    }
  };
  std::vector<std::thread> threads;
  for (ProgramCache* cache : {&shared, &shared, &another, &another})
    threads.emplace_back(work, std::ref(*cache));
  for (std::thread& thread : threads) thread.join();
  for (const ProgramCache* cache : {&shared, &another}) {
    const ProgramStatistics result = cache->statistics();
    expect(result.built + result.loaded == 3 && result.rejected == 0,
           "a program is made once for all threads");
  }
}

}  // namespace

int main() {
  const Device* const device = test_device();
  if (device == nullptr) {
    std::printf("skipped: no OpenCL device\n");
    return 0;
  }
  folder = (std::filesystem::temp_directory_path() / "phonebit_opencl_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 2;
  device_is_described(*device);
  const std::shared_ptr<Context> context = Context::create(*device);
  buffers_hold_and_are_refused(context);
  images_hold_and_are_refused(context);
  queues_are_checked(*device, context);
  command_buffers_replay(context);
  build_failures_are_explained(context);
  programs_are_kept_on_disk(context);
  threads_build_at_once(context);
  std::filesystem::remove_all(folder);
  return failures == 0 ? 0 : 1;
}
