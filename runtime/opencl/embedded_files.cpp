#include "opencl/embedded_files.h"

#include <charconv>
#include <string_view>

#include "format/inflate.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {

KernelFiles embedded_files() {
  const std::string all = format::inflate(embedded_stream, embedded_stream_size, embedded_text_size);
  KernelFiles files;
  for (std::string_view rest = all; !rest.empty();) {
    const size_t blank = rest.find(' '), line_end = rest.find('\n');
    size_t size = 0;
    if (blank < line_end && line_end < rest.size())
      std::from_chars(rest.data() + blank + 1, rest.data() + line_end, size);
    const std::string path(rest.substr(0, blank));
    rest.remove_prefix(line_end < rest.size() ? line_end + 1 : rest.size());
    if (size == 0 || size > rest.size())
      fail(ErrorCode::internal,
           "embedded kernels: '%s' has %zu bytes, expected 1 to %zu; build PhoneBit again", path.c_str(),
           size, rest.size());
    files.emplace(path, rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return files;
}

}  // namespace phonebit::engine::opencl
