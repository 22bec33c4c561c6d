#include "types/fail.h"

#include <cstdarg>
#include <cstdio>

namespace phonebit::engine {
namespace {

std::string format_arguments(const char* format, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  if (length <= 0) return format;
  std::string text(static_cast<size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

std::string format_text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_arguments(format, arguments);
  va_end(arguments);
  return text;
}

void fail(ErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = format_arguments(format, arguments);
  va_end(arguments);
  throw Error(code, text);
}

void fail_damaged(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = format_arguments(format, arguments);
  va_end(arguments);
  throw Error(ErrorCode::format, text + "; the file is damaged, convert the model again");
}

}  // namespace phonebit::engine
