// Taking a text apart from its beginning: each function takes off what it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phonebit::engine::energy {

/// Takes a prefix off; false, and nothing is taken, where it is not there.
bool take(std::string_view& text, std::string_view prefix);

/// Takes decimal digits off, a minus sign before them included; nothing where there are none, or more than an
/// int64_t holds.
std::optional<int64_t> take_number(std::string_view& text);

/// All of a text as a number; nothing where it is something else.
std::optional<int64_t> whole_number(std::string_view text);

/// Without blanks around it.
std::string_view trimmed(std::string_view text);

}  // namespace phonebit::engine::energy
