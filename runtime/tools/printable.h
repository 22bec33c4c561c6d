// Text from files and devices, as a terminal may show it: a name may hold anything, also what steers a
// terminal.
#pragma once

#include <string>
#include <string_view>

namespace phonebit::tools {

/// One character of a UTF-8 text.
struct Letter {
  unsigned character;  ///< what it encodes; the byte itself where that is no UTF-8
  size_t bytes;
  bool is_steering;  ///< it shows nothing itself: a control character, one that turns the order of letters,
                     ///< no UTF-8
};

/// The character at a place of a text.
Letter letter_at(std::string_view text, size_t place);

/// The text with an escape, as \x1b, for every such character.
std::string printable(std::string_view text);

/// The same of a text of several lines, whose line ends and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace phonebit::tools
