// printf-style construction of phonebit::engine::Error; internal to the runtime.
#pragma once

#include "types/error.h"

namespace phonebit::engine {

#if defined(__GNUC__)
#define PHONEBIT_PRINTF(FORMAT, FIRST) __attribute__((format(printf, FORMAT, FIRST)))
#else
#define PHONEBIT_PRINTF(FORMAT, FIRST)
#endif

/// The formatted text.
PHONEBIT_PRINTF(1, 2) std::string format_text(const char* format, ...);

/// Throws Error(code, formatted text).
[[noreturn]] PHONEBIT_PRINTF(2, 3) void fail(ErrorCode code, const char* format, ...);

/// Throws Error(format) for content that no correct writer produces; appends what to do about it.
[[noreturn]] PHONEBIT_PRINTF(1, 2) void fail_damaged(const char* format, ...);

}  // namespace phonebit::engine
