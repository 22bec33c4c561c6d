// Why a program ends early. Programs for people: one line on standard error, and an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace phonebit::tools {

/// Exit codes of both programs.
enum ExitCode {
  exit_ok = 0,
  exit_mismatch = 1,  ///< it ran, and something differs from what it should be
  exit_failed = 2,    ///< it could not run: usage, a file, a device
};

/// A failure that a person can help, in words.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws a Failure; as printf.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// A text; as printf.
std::string format_text(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace phonebit::tools
