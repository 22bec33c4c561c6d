#include <dlfcn.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "system/calls.h"

namespace phonebit::engine::system {

int open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

int create(const std::string& path, int mode) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

int open_alone(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  // File systems without locks give another error, and the descriptor is of use.
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return descriptor;
  ::close(descriptor);
  return -1;
}

int64_t read_at(int descriptor, void* into, size_t bytes, uint64_t offset) {
  return ::pread(descriptor, into, bytes, static_cast<off_t>(offset));
}

int flush(int descriptor) { return ::fsync(descriptor); }

int replace(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()); }

void remove(const std::string& path) { ::unlink(path.c_str()); }

void make_folder(const std::string& path) { ::mkdir(path.c_str(), 0700); }

uint64_t mapping_granularity() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

void* map(int descriptor, uint64_t offset, size_t bytes) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

void unmap(void* address, size_t bytes) { ::munmap(address, bytes); }

void* allocate(size_t alignment, size_t bytes) {
  void* address = nullptr;
  return ::posix_memalign(&address, alignment, bytes) == 0 ? address : nullptr;
}

void release(void* memory) { std::free(memory); }

uint64_t physical_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes)
                                     : uint64_t{4} << 30;
}

long process_number() { return ::getpid(); }

void* load_library(const char* name, std::string& problem) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const reason = ::dlerror();
  problem = reason != nullptr ? reason : "cannot be loaded";
  return nullptr;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

void unload_library(void* library) { ::dlclose(library); }

}  // namespace phonebit::engine::system
