#include "files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "failure.h"

namespace phonebit::tools {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

template <class Container>
Container read_all(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("%s: %s", path.c_str(), std::strerror(errno));
  Container content;
  uint8_t block[65536];
  while (const size_t count = std::fread(block, 1, sizeof block, file.get()))
    content.insert(content.end(), block, block + count);
  if (std::ferror(file.get()) != 0) fail("%s: %s", path.c_str(), std::strerror(errno));
  return content;
}

}  // namespace

Bytes read_bytes(const std::string& path) { return read_all<Bytes>(path); }

std::string read_text(const std::string& path) { return read_all<std::string>(path); }

void write_bytes(const std::string& path, const void* data, size_t size) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(data, 1, size, file) == size;
  const bool is_closed = file != nullptr && std::fclose(file) == 0;  // a full disk may show only now
  if (!is_written || !is_closed) fail("%s: %s", path.c_str(), std::strerror(errno));
}

std::string first_line(const std::string& path) {
  const File file(std::fopen(path.c_str(), "r"));
  char line[256];
  if (!file || std::fgets(line, sizeof line, file.get()) == nullptr) return "";
  line[std::strcspn(line, "\r\n")] = '\0';
  return line;
}

bool exists(const std::string& path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> opened(::opendir(folder.c_str()));
  if (!opened) return names;
  while (const dirent* entry = ::readdir(opened.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

}  // namespace phonebit::tools
