// Where exceptions end: every function of the C interface runs its work in guarded().
#pragma once

#include <string>

#include "phonebit/phonebit_c.h"

namespace phonebit::engine::c_api {

/// Keeps the exception in flight as this thread's last error and tells its status. Only inside a handler.
phonebit_status keep_exception() noexcept;

/// Makes `text` what phonebit_last_error says in this thread.
void keep_error(const std::string& text) noexcept;

/// Runs `action`. PHONEBIT_OK, or the status of what it threw.
template <class Action>
phonebit_status guarded(const Action& action) noexcept {
  try {
    action();
    return PHONEBIT_OK;
  } catch (...) {
    return keep_exception();
  }
}

}  // namespace phonebit::engine::c_api
