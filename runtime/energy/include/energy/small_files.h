// Linux's small text files, with messages for what is missing, closed or nonsense; and what takes their text
// apart from its beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phonebit::engine::energy {

constexpr const char* kClosedHint = "run as root";

/// A place below a folder, which may be the root of the file system, "/".
std::string below(const std::string& folder, const std::string& place);

/// Whether there is something at a path.
bool exists(const std::string& path);

/// Names in a folder in their order as texts; none where there is no such folder. Throws Error(device) if it
/// may not be read.
std::vector<std::string> names_in(const std::string& folder, const char* closed_hint = kClosedHint);

/// A file's text without blanks around it. Throws Error(device) if it cannot be read; the hint is what to do
/// if that is not permitted.
std::string read_text(const std::string& path, const char* closed_hint = kClosedHint);

/// A file's only number. Throws Error(device) if it cannot be read or holds something else.
int64_t read_integer(const std::string& path, const char* closed_hint = kClosedHint);

/// A file's text, or "" where there is none that can be read: for optional labels.
std::string readable_text(const std::string& path);

/// Takes a prefix off a text; false, and nothing is taken, where it is not there.
bool take(std::string_view& text, std::string_view prefix);

/// Takes decimal digits off, a minus sign before them included; nothing where there are none, or more than an
/// int64_t holds.
std::optional<int64_t> take_number(std::string_view& text);

/// All of a text as a number; nothing where it is something else.
std::optional<int64_t> whole_number(std::string_view text);

/// Without blanks around it.
std::string_view trimmed(std::string_view text);

}  // namespace phonebit::engine::energy
