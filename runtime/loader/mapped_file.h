// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <string>

namespace phonebit::loader {

/// The bytes of a regular file, shared with the page cache, unmapped on destruction. Move-only.
/// The file must not be shortened while it is mapped (writers replace files by renaming, which is safe).
class MappedFile {
 public:
  /// No bytes.
  MappedFile() = default;
  /// Throws Error(input) when the file is missing, unreadable or not a regular file, Error(format) when it is
  /// empty.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return static_cast<const std::byte*>(address_); }
  size_t size() const { return size_; }

 private:
  void* address_ = nullptr;
  size_t size_ = 0;
};

}  // namespace phonebit::loader
