#include "loader/file_bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "system/calls.h"
#include "types/cancellation.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

/// Constants lie at multiples of this in a file, and kernels read them in place.
constexpr size_t kAlignment = 64;

/// A file descriptor that is closed on every way out of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// Size of an open regular file.
uint64_t size_of(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) fail(ErrorCode::input, "cannot inspect: %s", std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::input, "is a directory; expected one .pbit file");
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::input, "is not a regular file; expected a .pbit file");
  return static_cast<uint64_t>(status.st_size);
}

void check_not_empty(uint64_t size) {
  if (size == 0) fail_damaged("the file is empty, expected at least a 64-byte header");
}

}  // namespace

FileBytes FileBytes::of_path(const std::string& path, const FileAccess& access) {
  const Descriptor file{system::open_to_read(path)};
  if (file.fd < 0) {
    const char* advice = errno == ENOENT ? "; check the path" : "";
    fail(ErrorCode::input, "cannot open: %s%s", std::strerror(errno), advice);
  }
  const uint64_t size = size_of(file.fd);
  return access.in_place ? mapped(file.fd, 0, size) : read(file.fd, 0, size, access);
}

FileBytes FileBytes::of_descriptor(int descriptor, int64_t offset, int64_t size, const FileAccess& access) {
  const uint64_t file_size = size_of(descriptor);
  if (offset < 0 || static_cast<uint64_t>(offset) > file_size)
    fail(ErrorCode::input, "offset %lld is not in the file, which has %llu bytes",
         static_cast<long long>(offset), static_cast<unsigned long long>(file_size));
  const uint64_t rest = file_size - static_cast<uint64_t>(offset);
  if (size < 0 || static_cast<uint64_t>(size) > rest)
    fail(ErrorCode::input,
         "%lld bytes from offset %lld are not in the file, which has %llu bytes; expected 0 (to its end) to "
         "%llu",
         static_cast<long long>(size), static_cast<long long>(offset),
         static_cast<unsigned long long>(file_size), static_cast<unsigned long long>(rest));
  const auto first = static_cast<uint64_t>(offset), count = size > 0 ? static_cast<uint64_t>(size) : rest;
  return access.in_place && first % kAlignment == 0 ? mapped(descriptor, first, count)
                                                    : read(descriptor, first, count, access);
}

FileBytes FileBytes::of_memory(const void* data, size_t size, const FileAccess& access) {
  if (data == nullptr) fail(ErrorCode::input, "the address is null; expected the bytes of a .pbit file");
  check_not_empty(size);
  FileBytes result;
  if (access.in_place && reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
    result.data_ = static_cast<const std::byte*>(data);
    result.size_ = size;
    return result;
  }
  result = room_for(size, access);
  std::memcpy(result.copy_.data(), data, size);
  return result;
}

FileBytes FileBytes::room_for(uint64_t size, const FileAccess& access) {
  check_not_empty(size);
  if (size > access.max_bytes)
    fail(
        ErrorCode::format,
        "the file has %llu bytes, more than the memory limit of %llu; raise Options::max_memory_bytes if the "
        "model is trusted",
        static_cast<unsigned long long>(size), static_cast<unsigned long long>(access.max_bytes));
  FileBytes result;
  result.size_ = static_cast<size_t>(size);
  result.copy_ = memory::AlignedBuffer(result.size_, "a copy of the file");
  result.data_ = result.copy_.data();
  return result;
}

FileBytes FileBytes::read(int descriptor, uint64_t offset, uint64_t size, const FileAccess& access) {
  FileBytes result = room_for(size, access);
  const Cancellation cancellation;
  for (uint64_t done = 0; done < size;) {
    cancellation.check();
    const size_t piece = std::min<uint64_t>(kPieceBytes, size - done);
    const int64_t count = system::read_at(descriptor, result.copy_.data() + done, piece, offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::input, "cannot read: %s", std::strerror(errno));
    if (count == 0)
      fail(ErrorCode::input, "the file ends after %llu of %llu bytes; was it changed while it was read?",
           static_cast<unsigned long long>(done), static_cast<unsigned long long>(size));
    done += static_cast<uint64_t>(count);
  }
  return result;
}

/// Mappings start at a page, so the page that holds `offset` is mapped from its beginning.
FileBytes FileBytes::mapped(int descriptor, uint64_t offset, uint64_t size) {
  check_not_empty(size);
  const uint64_t page = system::mapping_granularity();
  const uint64_t skipped = offset % page, first = offset - skipped;
  if (size > std::numeric_limits<size_t>::max() - skipped ||
      first > static_cast<uint64_t>(std::numeric_limits<off_t>::max()))
    fail(ErrorCode::device, "the file does not fit into this machine's address space");
  const auto bytes = static_cast<size_t>(skipped + size);
  void* const address = system::map(descriptor, first, bytes);
  if (address == nullptr)
    fail(errno == EACCES ? ErrorCode::input : ErrorCode::device, "cannot map %zu bytes: %s", bytes,
         std::strerror(errno));
  FileBytes result;
  result.mapping_ = address;
  result.mapping_bytes_ = bytes;
  result.data_ = static_cast<const std::byte*>(address) + skipped;
  result.size_ = static_cast<size_t>(size);
  return result;
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) system::unmap(mapping_, mapping_bytes_);
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      copy_(std::move(other.copy_)) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(copy_, other.copy_);
  return *this;
}

}  // namespace phonebit::engine::loader
