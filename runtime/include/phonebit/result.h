// Results without exceptions, and views of memory. A part of phonebit.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "phonebit/phonebit_c.h"

// Compilers that know it warn where what an object looks at is gone before the object is.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define PHONEBIT_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef PHONEBIT_LIFETIMEBOUND
#define PHONEBIT_LIFETIMEBOUND
#endif

namespace phonebit {
inline namespace v1 {

/// What kind of thing went wrong, so that programs can react without parsing text.
enum class Status : int32_t {
  ok = PHONEBIT_OK,
  format = PHONEBIT_ERROR_FORMAT,      ///< the file is damaged, of an unknown version, or beyond limits
  input = PHONEBIT_ERROR_INPUT,        ///< an argument: a path, an option, a buffer's size, a NaN
  device = PHONEBIT_ERROR_DEVICE,      ///< a processor, driver, memory or sensor that is absent or failed
  internal = PHONEBIT_ERROR_INTERNAL,  ///< a defect of PhoneBit
  cancelled = PHONEBIT_CANCELLED,      ///< Network::cancel was called meanwhile
  pending = PHONEBIT_PENDING,          ///< the job is not done yet
};

/// "ok", "format", ...
inline const char* status_name(Status status) {
  return phonebit_status_name(static_cast<phonebit_status>(status));
}

/// What failed; the text says where, what was found, what was expected and what to do.
struct Error {
  Status status = Status::ok;
  std::string text;
};

namespace detail {

/// The failure that a function of the C interface has just reported in this thread.
inline Error failure(phonebit_status status) {
  return {static_cast<Status>(status), status == PHONEBIT_PENDING ? "not done yet" : phonebit_last_error()};
}

[[noreturn]] inline void no_value(const Error& error) {
  std::fprintf(stderr, "phonebit: %s error: %s\n", status_name(error.status), error.text.c_str());
  std::abort();
}

}  // namespace detail

/// A value, or why there is none. Nothing here throws. value(), * and -> need a value: without one they print
/// the error and abort, so ask ok() first wherever a failure is possible.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  /// Status::ok and "" where there is a value.
  const Error& error() const noexcept { return error_; }

  T& value() & { return ok() ? *value_ : (detail::no_value(error_), *value_); }
  const T& value() const& { return ok() ? *value_ : (detail::no_value(error_), *value_); }
  /// A value of its own, so that `for (auto& device : devices().value())` is right.
  T value() && { return std::move(value()); }
  T value_or(T other) && { return ok() ? std::move(*value_) : std::move(other); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Error error_;
};

/// Success, or why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return error_.status == Status::ok; }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const noexcept { return error_; }

  /// Prints the error and aborts, if there is one.
  void value() const {
    if (!ok()) detail::no_value(error_);
  }

 private:
  Error error_;
};

namespace detail {

inline Result<void> result_of(phonebit_status status) {
  if (status != PHONEBIT_OK) return failure(status);
  return {};
}

}  // namespace detail

template <class T>
class Span;

namespace detail {

template <class Other>
constexpr bool is_span = false;
template <class T>
constexpr bool is_span<Span<T>> = true;

}  // namespace detail

/// Elements of somebody else's memory, which must stay as long as the span is used.
template <class T>
class Span {
  template <class Container>
  using Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>;
  template <class Container>
  using IfFits = std::enable_if_t<!detail::is_span<std::remove_cv_t<Container>> &&
                                  std::is_convertible_v<Element<Container> (*)[], T (*)[]>>;

 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t count>
  constexpr Span(T (&array)[count]) : data_(array), size_(count) {}
  /// Another one, of elements that may be const here alone.
  template <class Other, class = std::enable_if_t<std::is_convertible_v<Other (*)[], T (*)[]>>>
  constexpr Span(const Span<Other>& other) : data_(other.data()), size_(other.size()) {}
  /// A std::vector, std::array or std::string.
  template <class Container, class = IfFits<Container>>
  constexpr Span(Container& container PHONEBIT_LIFETIMEBOUND)
      : data_(container.data()), size_(container.size()) {}
  template <class Container, class = IfFits<const Container>>
  constexpr Span(const Container& container PHONEBIT_LIFETIMEBOUND)
      : data_(container.data()), size_(container.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t index) const { return data_[index]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace v1
}  // namespace phonebit
