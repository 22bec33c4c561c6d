#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <direct.h>
#include <io.h>
#include <malloc.h>
#include <share.h>
#include <windows.h>

#include <cerrno>
#include <system_error>

#include "system/calls.h"

namespace phonebit::engine::system {
namespace {

std::wstring wide(const std::string& text) {
  const int length = static_cast<int>(text.size());
  const int count = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), length, nullptr, 0);
  std::wstring result(static_cast<size_t>(count), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), length, result.data(), count);
  return result;
}

}  // namespace

int open_to_read(const std::string& path) {
  return ::_wopen(wide(path).c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
}

int create(const std::string& path, int) {
  const int flags = _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT;
  return ::_wopen(wide(path).c_str(), flags, _S_IREAD | _S_IWRITE);
}

int open_alone(const std::string& path) {
  const int flags = _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT;
  return ::_wsopen(wide(path).c_str(), flags, _SH_DENYRW, _S_IREAD | _S_IWRITE);
}

int64_t read_at(int descriptor, void* into, size_t bytes, uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  const auto file = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  LARGE_INTEGER before{};
  ::SetFilePointerEx(file, {}, &before, FILE_CURRENT);
  DWORD count = 0;
  const bool is_read = ::ReadFile(file, into, static_cast<DWORD>(bytes), &count, &place) != 0;
  const bool is_at_end = !is_read && ::GetLastError() == ERROR_HANDLE_EOF;
  ::SetFilePointerEx(file, before, nullptr, FILE_BEGIN);  // reading moved it
  if (is_read || is_at_end) return count;
  errno = EIO;
  return -1;
}

int flush(int descriptor) { return ::_commit(descriptor); }

int replace(const std::string& from, const std::string& to) {
  if (::MoveFileExW(wide(from).c_str(), wide(to).c_str(), MOVEFILE_REPLACE_EXISTING) != 0) return 0;
  errno = EACCES;
  return -1;
}

void remove(const std::string& path) { ::_wunlink(wide(path).c_str()); }

void make_folder(const std::string& path) { ::_wmkdir(wide(path).c_str()); }

uint64_t mapping_granularity() {
  SYSTEM_INFO info;
  ::GetSystemInfo(&info);
  return info.dwAllocationGranularity;
}

void* map(int descriptor, uint64_t offset, size_t bytes) {
  const auto file = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  const HANDLE mapping = ::CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  void* address = nullptr;
  if (mapping != nullptr) {
    address = ::MapViewOfFile(mapping, FILE_MAP_READ, static_cast<DWORD>(offset >> 32),
                              static_cast<DWORD>(offset), bytes);
    ::CloseHandle(mapping);  // the view keeps it
  }
  if (address == nullptr) errno = ENOMEM;
  return address;
}

void unmap(void* address, size_t) { ::UnmapViewOfFile(address); }

void* allocate(size_t alignment, size_t bytes) { return ::_aligned_malloc(bytes, alignment); }

void release(void* memory) { ::_aligned_free(memory); }

uint64_t physical_bytes() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) != 0 ? status.ullTotalPhys : uint64_t{4} << 30;
}

long process_number() { return static_cast<long>(::GetCurrentProcessId()); }

void* load_library(const char* name, std::string& problem) {
  const HMODULE library = ::LoadLibraryW(wide(name).c_str());
  if (library == nullptr) problem = std::system_category().message(static_cast<int>(::GetLastError()));
  return library;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

void unload_library(void* library) { ::FreeLibrary(static_cast<HMODULE>(library)); }

}  // namespace phonebit::engine::system
