// How the caller of the engine, an interpreter for example, ends work that takes long.
#pragma once

#include <atomic>

#include "types/fail.h"

namespace phonebit::engine {

/// Asked now and then by long work, in the thread that called the engine, whether to end; it then does so
/// with Error(cancelled). Null: nobody is asked. Of the whole process.
inline std::atomic<bool (*)()> interrupt_hook{nullptr};

/// Throws Error(cancelled) where the hook says so.
inline void check_interrupt() {
  bool (*const hook)() = interrupt_hook.load();
  if (hook != nullptr && hook()) fail(ErrorCode::cancelled, "interrupted");
}

}  // namespace phonebit::engine
