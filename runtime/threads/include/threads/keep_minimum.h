// The minimum of what several threads have found.
#pragma once

#include <atomic>

namespace phonebit::engine::threads {

template <class T>
void keep_minimum(std::atomic<T>& minimum, T value) {
  T seen = minimum.load(std::memory_order_relaxed);
  while (value < seen && !minimum.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace phonebit::engine::threads
