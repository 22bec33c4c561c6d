// Calls that operating systems have under different names: one implementation for POSIX, one for Windows. Paths are
// UTF-8. Failures are in errno, as those of ::read, ::write, ::close and ::fstat, which all systems have.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace phonebit::engine::system {

/// A descriptor that programs started later do not inherit, or -1. Never waits for the writer of a named pipe.
int open_to_read(const std::string& path);
/// The same of a new file, to write; fails where there is one. `mode`: who may do what with it.
int create(const std::string& path, int mode);
/// A descriptor to read and write a file, which is made where there is none; for the user alone. Until it is closed,
/// or the process ends, nobody else gets one: -1.
int open_alone(const std::string& path);
/// Like pread.
int64_t read_at(int descriptor, void* into, size_t bytes, uint64_t offset);
/// 0 when all that was written is on the disk, else -1.
int flush(int descriptor);

/// 0 when `to` is now the file that was `from`, else -1.
int replace(const std::string& from, const std::string& to);
void remove(const std::string& path);
/// For the user alone.
void make_folder(const std::string& path);

/// Offsets of mappings are multiples of this.
uint64_t mapping_granularity();
/// Read-only bytes of a file, or null.
void* map(int descriptor, uint64_t offset, size_t bytes);
void unmap(void* address, size_t bytes);

/// Memory at a multiple of `alignment`, a power of two; null when there is none.
void* allocate(size_t alignment, size_t bytes);
void release(void* memory);
/// Bytes of physical memory; 4 GiB where the system does not tell.
uint64_t physical_bytes();

long process_number();

/// A handle, or null with the reason in `problem`.
void* load_library(const char* name, std::string& problem);
void* find_symbol(void* library, const char* name);
void unload_library(void* library);

}  // namespace phonebit::engine::system
