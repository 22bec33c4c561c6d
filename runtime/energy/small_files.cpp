#include "energy/small_files.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <system_error>

#include "system/calls.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

constexpr size_t kLargestBytes = 65536;  // the kernel's own are a page

[[noreturn]] void fail_to_read(const std::string& path, int reason, const char* closed_hint) {
  if (reason == EACCES || reason == EPERM)
    fail(ErrorCode::device, "%s: not permitted to read; %s", path.c_str(), closed_hint);
  const std::string text = std::generic_category().message(reason);
  fail(ErrorCode::device, "%s: cannot be read: %s", path.c_str(), text.c_str());
}

/// The file's text; gives 0, or errno's reason why it cannot be read.
int read_file(const std::string& path, std::string& text) {
  const int file = system::open_to_read(path);
  if (file < 0) return errno;
  char page[4096];
  int reason = 0;
  while (reason == 0) {
    const ssize_t bytes = ::read(file, page, sizeof page);
    if (bytes == 0) break;
    if (bytes > 0)
      text.append(page, static_cast<size_t>(bytes));
    else if (errno != EINTR)
      reason = errno;
    if (text.size() > kLargestBytes) reason = EFBIG;
  }
  ::close(file);
  return reason;
}

}  // namespace

std::string below(const std::string& folder, const std::string& place) {
  const bool needs_slash = !folder.empty() && folder.back() != '/';
  return folder + (needs_slash ? "/" : "") + place;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<std::string> names_in(const std::string& folder, const char* closed_hint) {
  struct Closing {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Closing> directory(::opendir(folder.c_str()));
  if (!directory) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    fail_to_read(folder, errno, closed_hint);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) fail_to_read(folder, errno, closed_hint);
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_text(const std::string& path, const char* closed_hint) {
  std::string text;
  const int reason = read_file(path, text);
  if (reason != 0) fail_to_read(path, reason, closed_hint);
  return std::string(trimmed(text));
}

int64_t read_integer(const std::string& path, const char* closed_hint) {
  const std::string text = read_text(path, closed_hint);
  const std::optional<int64_t> number = whole_number(text);
  if (!number)
    fail(ErrorCode::device, "%s: not a number (expected an integer, got '%.40s')", path.c_str(),
         text.c_str());
  return *number;
}

std::string readable_text(const std::string& path) {
  std::string text;
  return read_file(path, text) == 0 ? std::string(trimmed(text)) : std::string();
}

bool take(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<int64_t> whole_number(std::string_view text) {
  const std::optional<int64_t> number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace phonebit::engine::energy
