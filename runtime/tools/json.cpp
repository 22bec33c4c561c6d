#include "json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "failure.h"
#include "printable.h"

namespace phonebit::tools {

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  quote(name);
  document_ += ": ";
  follows_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  begin_value();
  quote(value);
  return *this;
}

JsonWriter& JsonWriter::flag(bool value) {
  begin_value();
  document_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::whole(int64_t value) {
  begin_value();
  document_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  begin_value();
  // The shortest of these that reads back as the same number.
  std::string digits;
  for (int precision : {6, 9, 12, 15, 17}) {
    digits = format_text("%.*g", precision, value);
    if (std::strtod(digits.c_str(), nullptr) == value) break;
  }
  document_ += digits;
  return *this;
}

JsonWriter& JsonWriter::null() {
  begin_value();
  document_ += "null";
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  begin_value();
  document_ += bracket;
  has_values_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_values = has_values_.back();
  has_values_.pop_back();
  if (had_values) break_line();
  document_ += bracket;
  return *this;
}

void JsonWriter::begin_value() {
  if (follows_key_ || has_values_.empty()) {
    follows_key_ = false;
    return;
  }
  if (has_values_.back()) document_ += layout_ == Layout::one_line ? ", " : ",";
  has_values_.back() = true;
  break_line();
}

void JsonWriter::break_line() {
  if (layout_ == Layout::indented) document_ += "\n" + std::string(2 * has_values_.size(), ' ');
}

void JsonWriter::quote(std::string_view value) {
  document_ += '"';
  for (size_t place = 0; place < value.size();) {
    const Letter letter = letter_at(value, place);
    if (letter.is_steering)
      document_ += format_text("\\u%04x", letter.character);
    else if (letter.character == '"' || letter.character == '\\')
      document_ += std::string("\\") + value[place];
    else
      document_ += value.substr(place, letter.bytes);
    place += letter.bytes;
  }
  document_ += '"';
}

}  // namespace phonebit::tools
