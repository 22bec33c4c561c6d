// Program binaries on disk, each in a file of its own with its whole key and a checksum.
#pragma once

#include <optional>
#include <string>

namespace phonebit::engine::gpu {

/// What a look into the store found.
struct StoredBinary {
  bool is_rejected = false;           ///< there is a file, but a damaged one or one of another key
  std::optional<std::string> binary;  ///< of exactly this key
};

/// Thread-safe, also between processes: files are complete from the moment on in which they have their name.
class BinaryStore {
 public:
  /// `directory`: empty for a store that keeps nothing.
  explicit BinaryStore(std::string directory) : directory_(std::move(directory)) {}

  StoredBinary load(const std::string& key) const;
  /// Keeps a binary, or does not where that is impossible. Creates the directory.
  void store(const std::string& key, const std::string& binary) const;
  /// A file of the directory, to read and write: there is one, and no other process has it so. -1 where that is
  /// impossible. Creates the directory.
  int open_alone(const std::string& path) const;
  /// The file of a key, whether it exists or not.
  std::string path(const std::string& key) const;

 private:
  std::string directory_;
};

}  // namespace phonebit::engine::gpu
