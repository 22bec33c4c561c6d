#include "fault_points.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "opencl/cl_functions.h"

namespace phonebit::fuzz {
namespace {

std::atomic<int> armed_kind{-1};
std::atomic<int> left{0};  // operations until the one that fails
std::atomic<bool> lasts{false};
std::atomic<bool> has_failed{false};
std::atomic<int> pauses{0};

bool is_armed(Fault kind) { return armed_kind.load() == static_cast<int>(kind) && pauses.load() == 0; }

/// Counts an operation; whether it fails.
bool fails(Fault kind) {
  if (!is_armed(kind)) return false;
  const int before = left.fetch_sub(1);
  if (before > 1 || (before < 1 && !lasts.load())) return false;
  has_failed = true;
  return true;
}

/// As a file operation that fails.
template <class Result>
Result failed(Result result, int error) {
  errno = error;
  return result;
}

/// So that loops around reads and writes go round.
size_t shortened(size_t bytes) { return is_armed(Fault::file) ? std::min<size_t>(bytes, 5000) : bytes; }

}  // namespace

void arm(Fault kind, int number, bool is_lasting) {
  left = number;
  lasts = is_lasting;
  has_failed = false;
  armed_kind = static_cast<int>(kind);
}

bool disarm() {
  armed_kind = -1;
  return has_failed.load();
}

Pause::Pause() { ++pauses; }
Pause::~Pause() { --pauses; }

namespace {

using namespace phonebit::engine::opencl;

void give_failure(cl_int* status) {
  if (status != nullptr) *status = CL_OUT_OF_RESOURCES;
}
template <class Other>
void give_failure(Other) {}

/// An OpenCL function of the table, which may fail.
template <auto Member>
struct Point;
template <class Result, class... Parameters, Result (*Api::*Member)(Parameters...) noexcept>
struct Point<Member> {
  static inline Result (*real)(Parameters...) noexcept = nullptr;
  static inline bool is_wait = false;

  static Result call(Parameters... parameters) noexcept {
    if constexpr (std::is_void_v<Result>) {
      real(parameters...);
    } else {
      if (!fails(Fault::opencl)) return real(parameters...);
      // A driver that gives up waiting has dropped the commands, which would else write to freed memory.
      if (is_wait) real(parameters...);
      (give_failure(parameters), ...);
      if constexpr (std::is_pointer_v<Result>)
        return nullptr;
      else
        return CL_OUT_OF_RESOURCES;
    }
  }
};

}  // namespace
}  // namespace phonebit::fuzz

using namespace phonebit::fuzz;

void* operator new(size_t bytes) {
  void* const memory = fails(Fault::allocation) ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return fails(Fault::allocation) ? nullptr : std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

extern "C" {
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
int __real_open64(const char* path, int flags, ...);
FILE* __real_fopen64(const char* path, const char* mode);
ssize_t __real_read(int file, void* data, size_t bytes);
ssize_t __real_pread64(int file, void* data, size_t bytes, off_t offset);
ssize_t __real_write(int file, const void* data, size_t bytes);
void* __real_mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_fsync(int file);
int __real_rename(const char* from, const char* to);
void* __real_dlsym(void* library, const char* name);

int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return fails(Fault::allocation) ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}
int __wrap_open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return fails(Fault::file) ? failed(-1, EMFILE) : __real_open64(path, flags, mode);
}
FILE* __wrap_fopen64(const char* path, const char* mode) {
  return fails(Fault::file) ? failed<FILE*>(nullptr, EMFILE) : __real_fopen64(path, mode);
}
ssize_t __wrap_read(int file, void* data, size_t bytes) {
  return fails(Fault::file) ? failed<ssize_t>(-1, EIO) : __real_read(file, data, shortened(bytes));
}
ssize_t __wrap_pread64(int file, void* data, size_t bytes, off_t offset) {
  return fails(Fault::file) ? failed<ssize_t>(-1, EIO) : __real_pread64(file, data, shortened(bytes), offset);
}
ssize_t __wrap_write(int file, const void* data, size_t bytes) {
  return fails(Fault::file) ? failed<ssize_t>(-1, ENOSPC) : __real_write(file, data, shortened(bytes));
}
void* __wrap_mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return fails(Fault::file) ? failed(MAP_FAILED, ENOMEM)
                            : __real_mmap64(address, bytes, protection, flags, file, offset);
}
int __wrap_fsync(int file) { return fails(Fault::file) ? failed(-1, EIO) : __real_fsync(file); }
int __wrap_rename(const char* from, const char* to) {
  return fails(Fault::file) ? failed(-1, EIO) : __real_rename(from, to);
}

void* __wrap_dlsym(void* library, const char* name) {
  void* const found = __real_dlsym(library, name);
  // Sanitizers ask for their functions before they are ready for strcmp, which is one of them.
  const bool is_opencl = name[0] == 'c' && name[1] == 'l' && name[2] >= 'A' && name[2] <= 'Z';
  if (found == nullptr || !is_opencl || std::strncmp(name, "clRelease", 9) == 0) return found;
#define PHONEBIT_POINT(RESULT, NAME, PARAMETERS)                                                     \
  if (std::strcmp(name, #NAME) == 0) {                                                               \
    using Here = Point<&phonebit::engine::opencl::Api::NAME>;                                        \
    Here::real = reinterpret_cast<decltype(Here::real)>(found);                                      \
    Here::is_wait = std::strcmp(name, "clFinish") == 0 || std::strcmp(name, "clWaitForEvents") == 0; \
    return reinterpret_cast<void*>(&Here::call);                                                     \
  }
  PHONEBIT_CL_FUNCTIONS(PHONEBIT_POINT, PHONEBIT_POINT)
#undef PHONEBIT_POINT
  return found;
}
}
