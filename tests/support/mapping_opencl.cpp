// An OpenCL library that passes everything on to the real one, which it is linked to, but keeps to what the
// specification promises of memory that the host and a device share, and to no more. Many drivers promise more:
// where the device is a processor, a mapped pointer is the buffer itself.
//
// - A mapping has memory of its own. When the map command executes, it receives the device's bytes, or garbage
//   where the region was to be invalidated. Bytes outside the region are garbage.
// - The host has finished with a mapping when it calls clEnqueueUnmapMemObject: its bytes are taken then, reach
//   the device when the command executes, and only where the region was mapped for writing. The memory is
//   garbage afterwards.
// - What a non-blocking write reads is taken when it is enqueued, what a non-blocking read fills is garbage
//   until then: the host must leave both alone.
//
// What is undefined is reported: on stderr, and by take_mapping_faults(). Commands of one queue count in the
// order in which they are enqueued, so queues must be in order, and sub-buffers are not followed.
#include "mapping_opencl.h"

#include <iterator>

using namespace mapping_opencl;

namespace {

/// Bytes of host memory that a "Rect" command uses, from the first to after the last.
struct Span {
  size_t begin, end;

  Span(const size_t* origin, const size_t* region, size_t row, size_t slice) {
    row = row != 0 ? row : region[0];
    slice = slice != 0 ? slice : region[1] * row;
    begin = origin[0] + origin[1] * row + origin[2] * slice;
    end = begin + (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
  }
};

size_t size_of(cl_mem buffer) {
  size_t bytes = 0;
  real().clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  return bytes;
}

/// What a write takes from the host.
std::unique_ptr<Pending> taken(const void* from, size_t begin, size_t end) {
  auto pending = std::make_unique<Pending>();
  pending->bytes.resize(end);
  const auto* const bytes = static_cast<const unsigned char*>(from);
  std::copy(bytes + begin, bytes + end, pending->bytes.data() + begin);
  return pending;
}

/// A buffer of garbage that lives until the commands that use it have executed.
cl_mem garbage_buffer(cl_command_queue queue, size_t bytes, cl_int* status) {
  cl_context context = nullptr;
  real().clGetCommandQueueInfo(queue, kQueueContext, sizeof context, &context, nullptr);
  Bytes content(bytes);
  fill(content.data(), bytes);
  return real().clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes, content.data(), status);
}

}  // namespace

extern "C" {

/// What was reported since the last call. Waits for what is enqueued.
const char* take_mapping_faults() {
  static std::string* const taken = new std::string;
  std::unique_lock<std::mutex> lock(state().mutex);
  state().idle.wait_for(lock, std::chrono::seconds(10), [] { return state().pending == 0; });
  for (const auto& mapping : state().ended)
    if (!is_garbage(mapping->memory.data(), 0, mapping->memory.size()))
      report("the host wrote into a mapping after the unmap");
  state().ended.clear();
  state().ended_bytes = 0;
  taken->swap(state().faults);
  state().faults.clear();
  return taken->c_str();
}

/// How many mappings there were.
int count_mappings() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().made;
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, cl_bitfield flags,
                         size_t offset, size_t bytes, cl_uint waits, const cl_event* wait_list,
                         cl_event* event, cl_int* status) {
  auto mapping = std::make_unique<Mapping>();
  mapping->buffer = buffer;
  mapping->offset = offset;
  mapping->bytes = bytes;
  mapping->is_writing = (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0;
  mapping->memory.resize(size_of(buffer) + 2 * kGuard);
  fill(mapping->memory.data(), mapping->memory.size());
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    for (const auto& [address, other] : state().mappings)
      if (other->buffer == buffer && other->overlaps(offset, bytes) &&
          (other->is_writing || mapping->is_writing))
        report("a region is mapped for writing and mapped again");
  }
  cl_int result = CL_SUCCESS;
  const bool is_invalid = (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0;
  const cl_mem from = is_invalid ? garbage_buffer(queue, bytes, &result) : buffer;
  if (result == CL_SUCCESS)
    result = real().clEnqueueReadBuffer(queue, from, is_blocking, is_invalid ? 0 : offset, bytes,
                                        mapping->address(), waits, wait_list, &mapping->ready);
  if (is_invalid && from != nullptr) real().clReleaseMemObject(from);
  if (status != nullptr) *status = result;
  if (result != CL_SUCCESS) return nullptr;
  if (event != nullptr) real().clEnqueueMarkerWithWaitList(queue, 1, &mapping->ready, event);
  void* const address = mapping->address();
  const std::lock_guard<std::mutex> lock(state().mutex);
  ++state().made;
  state().mappings[address] = std::move(mapping);
  return address;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void* address, cl_uint waits,
                               const cl_event* wait_list, cl_event* event) {
  std::unique_ptr<Mapping> mapping;
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    const auto found = state().mappings.find(address);
    if (found != state().mappings.end()) {
      mapping = std::move(found->second);
      state().mappings.erase(found);
    }
  }
  if (!mapping) return real().clEnqueueUnmapMemObject(queue, buffer, address, waits, wait_list, event);
  auto pending = std::make_unique<Pending>();
  pending->bytes.assign(mapping->address(), mapping->address() + mapping->bytes);
  cl_int ready = CL_QUEUED;
  real().clGetEventInfo(mapping->ready, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ready, &ready, nullptr);
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    if (ready != CL_COMPLETE) report("a mapping is ended by the host before its map command has completed");
    const size_t begin = kGuard + mapping->offset, end = begin + mapping->bytes;
    if (!is_garbage(mapping->memory.data(), 0, begin) ||
        !is_garbage(mapping->memory.data(), end, mapping->memory.size()))
      report("the host wrote outside the region that it has mapped");
  }
  cl_event own = nullptr;
  cl_int result = CL_SUCCESS;
  if (mapping->is_writing) {
    result = real().clEnqueueWriteBuffer(queue, buffer, 0, mapping->offset, mapping->bytes,
                                         pending->bytes.data(), waits, wait_list, &own);
  } else {
    if (ready == CL_COMPLETE) pending->expected = pending->bytes;
    result = real().clEnqueueReadBuffer(queue, buffer, 0, mapping->offset, mapping->bytes,
                                        pending->bytes.data(), waits, wait_list, &own);
  }
  if (result != CL_SUCCESS) return result;
  real().clReleaseEvent(mapping->ready);
  if (ready != CL_COMPLETE) {
    pending->mapping = std::move(mapping);  // its map command still has to fill it
    keep(queue, std::move(pending), own, event);
    return CL_SUCCESS;
  }
  fill(mapping->memory.data(), mapping->memory.size());
  keep(queue, std::move(pending), own, event);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().ended_bytes += mapping->memory.size();
  state().ended.push_back(std::move(mapping));
  while (state().ended_bytes > kWatchedBytes) {
    const Mapping& oldest = *state().ended.front();
    if (!is_garbage(oldest.memory.data(), 0, oldest.memory.size()))
      report("the host wrote into a mapping after the unmap");
    state().ended_bytes -= oldest.memory.size();
    state().ended.pop_front();
  }
  return CL_SUCCESS;
}

cl_int clReleaseMemObject(cl_mem memory) {
  cl_uint references = 0;
  real().clGetMemObjectInfo(memory, kReferenceCount, sizeof references, &references, nullptr);
  if (references == 1) {
    const std::lock_guard<std::mutex> lock(state().mutex);
    auto& mappings = state().mappings;
    for (auto at = mappings.begin(); at != mappings.end();) {
      const bool is_of_it = at->second->buffer == memory;
      if (is_of_it) report("a buffer is released while it is mapped");
      at = is_of_it ? mappings.erase(at) : std::next(at);
    }
  }
  return real().clReleaseMemObject(memory);
}

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* status) {
  const cl_kernel kernel = real().clCreateKernel(program, name, status);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().arguments[kernel].clear();  // of one before it at the same address
  return kernel;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  void* object = nullptr;
  if (bytes == sizeof object && value != nullptr) std::memcpy(&object, value, bytes);
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().arguments[kernel][index] = object;
  }
  return real().clSetKernelArg(kernel, index, bytes, value);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local, cl_uint waits,
                              const cl_event* wait_list, cl_event* event) {
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    for (const auto& [index, object] : state().arguments[kernel])
      check_use(static_cast<cl_mem>(object), false, [kernel, index = index] {
        return "kernel " + name_of(kernel) + ", argument " + std::to_string(index);
      });
  }
  return real().clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list,
                                       event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, size_t offset,
                           size_t bytes, void* to, cl_uint waits, const cl_event* wait_list,
                           cl_event* event) {
  check_use_now(buffer, false, "clEnqueueReadBuffer");
  fill(static_cast<unsigned char*>(to), bytes);
  return real().clEnqueueReadBuffer(queue, buffer, is_blocking, offset, bytes, to, waits, wait_list, event);
}

cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                               const size_t* origin, const size_t* host_origin, const size_t* region,
                               size_t row, size_t slice, size_t host_row, size_t host_slice, void* to,
                               cl_uint waits, const cl_event* wait_list, cl_event* event) {
  check_use_now(buffer, false, "clEnqueueReadBufferRect");
  const size_t pitch = host_row != 0 ? host_row : region[0];
  const Span span(host_origin, region, host_row, host_slice);
  for (size_t i = 0; region[2] == 1 && i < region[1]; ++i)
    fill(static_cast<unsigned char*>(to) + span.begin + i * pitch, region[0]);
  return real().clEnqueueReadBufferRect(queue, buffer, is_blocking, origin, host_origin, region, row, slice,
                                        host_row, host_slice, to, waits, wait_list, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, size_t offset,
                            size_t bytes, const void* from, cl_uint waits, const cl_event* wait_list,
                            cl_event* event) {
  check_use_now(buffer, true, "clEnqueueWriteBuffer");
  auto pending = taken(from, 0, bytes);
  cl_event own = nullptr;
  const cl_int result = real().clEnqueueWriteBuffer(queue, buffer, is_blocking, offset, bytes,
                                                    pending->bytes.data(), waits, wait_list, &own);
  if (result == CL_SUCCESS) keep(queue, std::move(pending), own, event);
  return result;
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                                const size_t* origin, const size_t* host_origin, const size_t* region,
                                size_t row, size_t slice, size_t host_row, size_t host_slice,
                                const void* from, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  check_use_now(buffer, true, "clEnqueueWriteBufferRect");
  const Span span(host_origin, region, host_row, host_slice);
  auto pending = taken(from, span.begin, span.end);
  cl_event own = nullptr;
  const cl_int result =
      real().clEnqueueWriteBufferRect(queue, buffer, is_blocking, origin, host_origin, region, row, slice,
                                      host_row, host_slice, pending->bytes.data(), waits, wait_list, &own);
  if (result == CL_SUCCESS) keep(queue, std::move(pending), own, event);
  return result;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t offset, size_t to_offset,
                           size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  check_use_now(from, false, "clEnqueueCopyBuffer");
  check_use_now(to, true, "clEnqueueCopyBuffer");
  return real().clEnqueueCopyBuffer(queue, from, to, offset, to_offset, bytes, waits, wait_list, event);
}

cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem from, cl_mem to, size_t offset,
                                  const size_t* origin, const size_t* region, cl_uint waits,
                                  const cl_event* wait_list, cl_event* event) {
  check_use_now(from, false, "clEnqueueCopyBufferToImage");
  return real().clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region, waits, wait_list, event);
}

}  // extern "C"
