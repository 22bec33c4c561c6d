// The bytes of a .pbit file, wherever they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/aligned_buffer.h"

namespace phonebit::engine::loader {

/// Read between two looks at an interrupt: some milliseconds.
inline constexpr size_t kPieceBytes = size_t{8} << 20;

/// How bytes become a FileBytes.
struct FileAccess {
  /// Used where they are: a mapping that is shared with the page cache, or the caller's memory. They must
  /// neither change nor shrink meanwhile: what is computed from them would be undefined, and reading beyond
  /// the end of a file that was cut short ends the process (SIGBUS). Otherwise they are copied.
  bool in_place = false;
  /// Largest copy.
  uint64_t max_bytes = uint64_t{4} << 30;
};

/// Read-only bytes at a multiple of 64. Move-only.
///
/// Errors: input when a file is missing, unreadable, not a regular file, or shorter than asked for;
/// format when there are no bytes, or more than max_bytes; device when memory is short.
class FileBytes {
 public:
  /// No bytes.
  FileBytes() = default;
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  static FileBytes of_path(const std::string& path, const FileAccess& access = {});
  /// `size` bytes from `offset` of an open file; size 0: to its end. The descriptor is neither kept nor
  /// closed, and its position stays. Copied in any case where `offset` is no multiple of 64.
  static FileBytes of_descriptor(int descriptor, int64_t offset, int64_t size, const FileAccess& access = {});
  /// Copied in any case where the memory does not start at a multiple of 64.
  static FileBytes of_memory(const void* data, size_t size, const FileAccess& access = {});

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// Whether others can change them.
  bool is_in_place() const { return copy_.data() == nullptr; }

 private:
  static FileBytes mapped(int descriptor, uint64_t offset, uint64_t size);
  /// Room for a copy of `size` bytes, at most access.max_bytes.
  static FileBytes room_for(uint64_t size, const FileAccess& access);
  static FileBytes read(int descriptor, uint64_t offset, uint64_t size, const FileAccess& access);

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  memory::AlignedBuffer copy_;
};

}  // namespace phonebit::engine::loader
