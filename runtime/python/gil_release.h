// Work without Python's global lock.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

namespace phonebit::engine::python {

/// Other threads run Python as long as it lives.
///
/// Before 3.14 Python ends a daemon thread that asks for the lock while the interpreter finalises by
/// pthread_exit(), whose unwinding no destructor lets pass: it would end the process by std::terminate. Such a
/// thread stays here for ever, as 3.14 has it; the process exits meanwhile.
class GilRelease {
 public:
  GilRelease() = default;
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // nothing but that unwinding, which must not leave this handler either
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* const state_ = PyEval_SaveThread();
};

}  // namespace phonebit::engine::python
