#include "loader/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "fail.h"

namespace phonebit::loader {
namespace {

/// A file descriptor that is closed on every way out of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must fail below, not wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    const char* advice = errno == ENOENT ? "; check the path" : "";
    fail(ErrorCode::input, "cannot open: %s%s", std::strerror(errno), advice);
  }
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) fail(ErrorCode::input, "cannot inspect: %s", std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::input, "is a directory; expected the path of one .pbit file");
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::input, "is not a regular file; expected a .pbit file");
  if (status.st_size == 0) fail_damaged("the file is empty, expected at least a 64-byte header");
  if (static_cast<unsigned long long>(status.st_size) > std::numeric_limits<size_t>::max())
    fail(ErrorCode::device, "the file does not fit into this machine's address space");
  size_ = static_cast<size_t>(status.st_size);
  address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address_ == MAP_FAILED) {
    address_ = nullptr;
    fail(ErrorCode::device, "cannot map %zu bytes: %s", size_, std::strerror(errno));
  }
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace phonebit::loader
