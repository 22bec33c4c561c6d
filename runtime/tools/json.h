// JSON, written piece by piece: one document with an indent for people, or one line of a log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phonebit::tools {

/// A document that grows. The caller opens and closes objects and arrays in pairs, and gives a key before
/// each value of an object.
class JsonWriter {
 public:
  enum class Layout { one_line, indented };
  explicit JsonWriter(Layout layout = Layout::indented) : layout_(layout) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& flag(bool value);
  JsonWriter& whole(int64_t value);
  /// NaN and infinity, which JSON lacks, become null.
  JsonWriter& real(double value);
  JsonWriter& null();

  /// Shortcuts for objects: key and value.
  JsonWriter& text(std::string_view name, std::string_view value) { return key(name).text(value); }
  JsonWriter& flag(std::string_view name, bool value) { return key(name).flag(value); }
  JsonWriter& whole(std::string_view name, int64_t value) { return key(name).whole(value); }
  JsonWriter& real(std::string_view name, double value) { return key(name).real(value); }

  /// What was written so far.
  const std::string& document() const { return document_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void begin_value();
  void break_line();
  void quote(std::string_view value);

  Layout layout_;
  std::string document_;
  std::vector<bool> has_values_;  // of each open object or array
  bool follows_key_ = false;
};

}  // namespace phonebit::tools
