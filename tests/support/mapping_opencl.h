// What mapping_opencl.cpp knows of mappings and of commands that have not executed yet, and what it reports.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opencl/cl_functions.h"

namespace mapping_opencl {

using namespace phonebit::engine::opencl;

constexpr cl_uint kQueueContext = 0x1090, kReferenceCount = 0x1105, kFunctionName = 0x1190;
constexpr size_t kGuard = 4096;
/// Memory of ended mappings that is still watched.
constexpr size_t kWatchedBytes = size_t{64} << 20;

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

inline const Api& real() {
  static const Api functions = [] {
    Api result;
#define PHONEBIT_FIND(RESULT, NAME, PARAMETERS) find(result.NAME, #NAME);
    PHONEBIT_CL_FUNCTIONS(PHONEBIT_FIND, PHONEBIT_FIND)
#undef PHONEBIT_FIND
    return result;
  }();
  return functions;
}

using Bytes = std::vector<unsigned char>;

/// Neither zeros nor ones: as bits, numbers and indices it gives wrong results.
inline unsigned char garbage(size_t at) { return static_cast<unsigned char>((at * 2654435761u) >> 11 | 1u); }

inline void fill(unsigned char* to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = garbage(i);
}

inline bool is_garbage(const unsigned char* from, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    if (from[i] != garbage(i)) return false;
  return true;
}

struct Mapping {
  cl_mem buffer = nullptr;
  size_t offset = 0, bytes = 0;
  bool is_writing = false;
  cl_event ready = nullptr;
  Bytes memory;  // of the whole buffer, between guards

  unsigned char* address() { return memory.data() + kGuard + offset; }
  bool overlaps(size_t other, size_t other_bytes) const {
    return other < offset + bytes && offset < other + other_bytes;
  }
};

/// Never destroyed: drivers' threads may still call back at exit.
struct State {
  std::mutex mutex;
  std::condition_variable idle;
  std::map<void*, std::unique_ptr<Mapping>> mappings;  // by the address that the host has
  std::deque<std::unique_ptr<Mapping>> ended;
  size_t ended_bytes = 0;
  std::map<cl_kernel, std::map<cl_uint, void*>> arguments;
  int pending = 0;  // callbacks to come
  int made = 0;     // mappings
  std::string faults;
};

inline State& state() {
  static State* const instance = new State;
  return *instance;
}

inline void report(const std::string& fault) {
  std::fprintf(stderr, "OpenCL: %s\n", fault.c_str());
  state().faults += fault + "\n";
}

/// With the mutex held. A kernel may only read what it is given: what it writes is seen at the unmap.
template <class Command>
void check_use(cl_mem buffer, bool is_written, const Command& command) {
  for (const auto& [address, mapping] : state().mappings) {
    if (mapping->buffer != buffer) continue;
    if (mapping->is_writing)
      report(command() + " uses a buffer while it is mapped for writing");
    else if (is_written)
      report(command() + " writes a buffer while it is mapped");
  }
}

inline void check_use_now(cl_mem buffer, bool is_written, const char* command) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  check_use(buffer, is_written, [&] { return std::string(command); });
}

inline std::string name_of(cl_kernel kernel) {
  static cl_int (*get_info)(cl_kernel, cl_uint, size_t, void*, size_t*) = nullptr;
  if (get_info == nullptr) find(get_info, "clGetKernelInfo");
  char name[128] = "";
  get_info(kernel, kFunctionName, sizeof name, name, nullptr);
  return name;
}

/// What a command needs until it has executed, and what is compared then.
struct Pending {
  Bytes bytes, expected;
  std::unique_ptr<Mapping> mapping;
};

inline void end(cl_event, cl_int, void* data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(data));
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (!pending->expected.empty() && pending->expected != pending->bytes)
    report("a buffer and its mapping for reading differ at the unmap: one of them was written meanwhile");
  --state().pending;
  state().idle.notify_all();
}

/// Keeps `pending` until the command has executed; gives the event to the caller, if it wants it.
inline void keep(cl_command_queue queue, std::unique_ptr<Pending> pending, cl_event own, cl_event* event) {
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    ++state().pending;
  }
  static cl_int (*set_callback)(cl_event, cl_int, void (*)(cl_event, cl_int, void*), void*) = nullptr;
  if (set_callback == nullptr) find(set_callback, "clSetEventCallback");
  set_callback(own, CL_COMPLETE, end, pending.release());
  if (event != nullptr)
    *event = own;
  else
    real().clReleaseEvent(own);
  real().clFlush(queue);
}

}  // namespace mapping_opencl
