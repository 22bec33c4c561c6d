// Taking a text apart from its beginning: lines, and the words of a line. Not by streams, which would bring
// locales with them into a library for phones.
#pragma once

#include <string>
#include <string_view>

namespace phonebit::engine::gpu {

/// Takes the first line off, without its end; false where nothing is left.
inline bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

/// Takes the first word off, with the blanks before it; false where there is none.
inline bool take_word(std::string_view& text, std::string& word) {
  constexpr const char* kBlanks = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return true;
}

}  // namespace phonebit::engine::gpu
