#include "failure.h"

#include <cstdarg>
#include <cstdio>

namespace phonebit::tools {
namespace {

std::string format_list(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();  // the zero byte
  return text;
}

}  // namespace

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = format_list(format, arguments);
  va_end(arguments);
  throw Failure(text);
}

std::string format_text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_list(format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace phonebit::tools
