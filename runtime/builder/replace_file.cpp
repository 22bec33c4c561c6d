#include <atomic>
#include <cerrno>
#include <cstring>

#include "builder/pbit_writer.h"
#include "system/calls.h"
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
  return system::flush(fd) == 0 ? 0 : errno;
}

}  // namespace

void replace_file(const std::string& path, const memory::AlignedBuffer& bytes) {
  static std::atomic<unsigned> count{0};
  const std::string temporary = path + format_text(".%ld.%u", system::process_number(), count++);
  const int fd = system::create(temporary, 0666);
  int error = fd < 0 ? errno : write_file(fd, bytes.data(), bytes.size());
  if (fd >= 0) {
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && system::replace(temporary, path) != 0) error = errno;
    if (error != 0) system::remove(temporary);
  }
  if (error != 0)
    fail(ErrorCode::input, "%s: cannot be written: %s; an existing file is unchanged", path.c_str(),
         std::strerror(error));
}

}  // namespace phonebit::engine::builder
