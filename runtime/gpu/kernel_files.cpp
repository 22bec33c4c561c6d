#include "gpu/kernel_files.h"

#include <dirent.h>

#include <charconv>
#include <memory>
#include <string_view>

#include "format/inflate.h"
#include "loader/file_bytes.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

bool ends_in(std::string_view name, std::string_view end) {
  return name.size() > end.size() && name.substr(name.size() - end.size()) == end;
}

bool is_kernel_file(std::string_view name) {
  return ends_in(name, ".cl") || ends_in(name, ".clh") || ends_in(name, ".table");
}

/// Adds the files of `folder`, whose paths begin with `prefix`; false where it is none.
bool add_folder(const std::string& folder, const std::string& prefix, KernelFiles& into) {
  struct Closing {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Closing> directory(::opendir(folder.c_str()));
  if (!directory) return false;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name, path = folder + "/" + name;
    if (name == "." || name == ".." || add_folder(path, prefix + name + "/", into) || !is_kernel_file(name))
      continue;
    const auto bytes = loader::FileBytes::of_path(path);
    into.emplace(prefix + name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return true;
}

}  // namespace

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

KernelFiles read_kernel_folder(const std::string& folder) {
  KernelFiles files;
  if (!add_folder(folder, "", files))
    fail(ErrorCode::input, "PHONEBIT_KERNELS: %s is no folder; expected one like bnn_kernels",
         folder.c_str());
  return files;
}

}  // namespace phonebit::engine::gpu
