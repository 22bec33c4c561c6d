// doctest, and how its messages show vectors and C strings. Tests include it in place of doctest's own header.
#pragma once

#include <doctest/doctest.h>

#include <vector>

namespace doctest {

template <class T>
struct StringMaker<std::vector<T>> {
  static String convert(const std::vector<T>& values) {
    constexpr size_t kShown = 16;
    String text = "[";
    for (size_t i = 0; i < values.size() && i < kShown; ++i)
      text += (i > 0 ? ", " : "") + toString(values[i]);
    return text + (values.size() > kShown ? ", ...]" : "]");
  }
};

/// Otherwise the address.
template <>
struct StringMaker<const char*> {
  static String convert(const char* text) { return text; }
};

}  // namespace doctest
