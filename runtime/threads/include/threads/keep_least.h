// The least of what several threads have found.
#pragma once

#include <atomic>

namespace phonebit::engine::threads {

template <class T>
void keep_least(std::atomic<T>& least, T value) {
  T seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace phonebit::engine::threads
