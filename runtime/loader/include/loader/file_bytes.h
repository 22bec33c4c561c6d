// The bytes of a .pbit file, wherever they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/aligned_buffer.h"

namespace phonebit::loader {

/// Read-only bytes at a multiple of 64: a mapping that is shared with the page cache, the caller's memory, or
/// a copy. Move-only. What is mapped or borrowed must neither change nor shrink meanwhile (writers replace
/// files by renaming, which is safe).
///
/// Errors: input when a file is missing, unreadable, not a regular file, or shorter than asked for; format
/// when there are no bytes; device when memory is short.
class FileBytes {
 public:
  /// No bytes.
  FileBytes() = default;
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  /// A whole file, mapped.
  static FileBytes of_path(const std::string& path);
  /// `size` bytes from `offset` of an open file, mapped; size 0: to its end. Copied where `offset` is no
  /// multiple of 64. The descriptor is neither kept nor closed, and its position stays.
  static FileBytes of_descriptor(int descriptor, int64_t offset, int64_t size);
  /// The caller's memory, in place; copied where it does not start at a multiple of 64.
  static FileBytes of_memory(const void* data, size_t size);

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void map(int descriptor, uint64_t offset, uint64_t size);
  void copy_unless_aligned();

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  memory::AlignedBuffer copy_;
};

}  // namespace phonebit::loader
