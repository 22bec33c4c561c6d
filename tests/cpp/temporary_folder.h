// A folder of a test's own, removed at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace phonebit::engine::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "phonebit_test_XXXXXX").string();
};

}  // namespace phonebit::engine::test
