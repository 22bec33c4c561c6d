// The one exception type of the runtime.
#pragma once

#include <stdexcept>
#include <string>

namespace phonebit::engine {

/// What kind of thing went wrong, so that callers can react without parsing text.
enum class ErrorCode {
  format,     ///< the .pbit file is damaged, of an unknown version, or beyond this engine's limits
  input,      ///< an argument of the call: a path, an array's size, a NaN
  device,     ///< an instruction set, threads or memory that this machine does not have
  internal,   ///< a defect of PhoneBit
  cancelled,  ///< Network::cancel was called meanwhile
};

/// Thrown by everything in namespace phonebit. what() says what failed, where, what was found, what was
/// expected and what to do. The object that threw stays usable.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace phonebit::engine
