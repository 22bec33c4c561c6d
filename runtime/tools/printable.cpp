#include "printable.h"

#include "failure.h"

namespace phonebit::tools {
namespace {

bool is_steering(unsigned character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
         character == 0x200e || character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xfeff;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  for (size_t place = 0; place < text.size();) {
    const Letter letter = letter_at(text, place);
    if (!letter.is_steering || kept.find(text[place]) != std::string_view::npos)
      result += text.substr(place, letter.bytes);
    else
      result += format_text(letter.character < 0x100 ? "\\x%02x" : "\\u%04x", letter.character);
    place += letter.bytes;
  }
  return result;
}

}  // namespace

Letter letter_at(std::string_view text, size_t place) {
  const auto lead = static_cast<unsigned char>(text[place]);
  if (lead < 0x80) return {lead, 1, is_steering(lead)};
  const size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned character = lead & (0xffu >> (bytes + 1));
  bool is_whole = bytes > 1 && lead < 0xf8 && place + bytes <= text.size();
  for (size_t i = 1; is_whole && i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[place + i]);
    is_whole = (next & 0xc0) == 0x80;
    character = character << 6 | (next & 0x3f);
  }
  if (!is_whole) return {lead, 1, true};
  return {character, bytes, is_steering(character)};
}

std::string printable(std::string_view text) { return escaped(text, ""); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace phonebit::tools
