// What callers pass through the C interface, checked. Everything here throws Error(input) that names the
// parameter.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "phonebit/phonebit_c.h"
#include "types/fail.h"

namespace phonebit::engine::c_api {

/// What a pointer that must not be null points to.
template <class T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) fail(ErrorCode::input, "%s: got NULL, expected a pointer", name);
  return *pointer;
}

/// A text that must not be null.
inline std::string given_text(const char* text, const char* name) {
  if (text == nullptr) fail(ErrorCode::input, "%s: got NULL, expected a text", name);
  return text;
}

/// An index below `count`; `what` in the plural: "inputs".
inline size_t checked_index(int32_t index, size_t count, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= count)
    fail(ErrorCode::input, "index: got %d, expected at least 0 and less than the number of %s, %zu", index,
         what, count);
  return static_cast<size_t>(index);
}

/// The number of elements in an array that may be null when it has none.
inline size_t checked_count(const void* array, int32_t count, const char* name) {
  if (count < 0) fail(ErrorCode::input, "%s: got %d of them, expected at least 0", name, count);
  if (count > 0 && array == nullptr) fail(ErrorCode::input, "%s: got NULL, expected %d of them", name, count);
  return static_cast<size_t>(count);
}

/// An enumeration of the engine whose numbers are those of the C interface, 0 to `last`.
template <class Enum>
Enum enumerator(int32_t value, Enum last, const char* name) {
  if (value < 0 || value > static_cast<int32_t>(last))
    fail(ErrorCode::input, "%s: got %d, expected 0 to %d", name, value, static_cast<int>(last));
  return static_cast<Enum>(value);
}

/// How many bytes of a structure both the caller and this library know.
inline size_t shared_bytes(uint32_t struct_size, size_t own_size, const char* type) {
  constexpr uint32_t kSmallest = 2 * sizeof(uint32_t), kLargest = 1 << 16;
  if (struct_size < kSmallest || struct_size > kLargest)
    fail(ErrorCode::input,
         "%s: struct_size is %u, expected sizeof(%s), %zu here; make it by PHONEBIT_INIT(%s)", type,
         struct_size, type, own_size, type);
  return std::min<size_t>(struct_size, own_size);
}

/// Fills the part of the caller's structure that both sides know.
template <class Struct>
void give(Struct& target, Struct content, const char* type) {
  content.struct_size = target.struct_size;
  std::memcpy(&target, &content, shared_bytes(target.struct_size, sizeof(Struct), type));
}

/// Reads the same part; the rest is zero.
template <class Struct>
Struct taken(const Struct& source, const char* type) {
  Struct content{};
  std::memcpy(&content, &source, shared_bytes(source.struct_size, sizeof(Struct), type));
  return content;
}

}  // namespace phonebit::engine::c_api
