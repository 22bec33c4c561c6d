#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "builder/pbit_writer.h"
#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

/// All bytes on the disk, or errno.
int write_file(int fd, const std::byte* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    data += done;
    bytes -= static_cast<size_t>(done);
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

void replace_file(const std::string& path, const memory::AlignedBuffer& bytes) {
  static std::atomic<unsigned> count{0};
  const std::string temporary = path + format_text(".%ld.%u", static_cast<long>(::getpid()), count++);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  int error = fd < 0 ? errno : write_file(fd, bytes.data(), bytes.size());
  if (fd >= 0) {
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) ::unlink(temporary.c_str());
  }
  if (error != 0)
    fail(ErrorCode::input, "%s: cannot be written: %s; an existing file is unchanged", path.c_str(),
         std::strerror(error));
}

}  // namespace phonebit::engine::builder
