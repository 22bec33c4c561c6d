#include "gpu/device.h"

namespace phonebit::engine::gpu {

void Queue::drain() noexcept {
  try {
    finish();
  } catch (const Error&) {  // the failure before it is told
  }
}

void follow(Queue& queue, Queue& other) {
  Events reached;
  other.mark(reached);
  other.flush();
  queue.wait_for(*reached[0]);
}

double event_milliseconds(const Events& events) {
  uint64_t nanoseconds = 0;
  for (const std::unique_ptr<Event>& event : events) {
    const EventSpan span = event->span();
    nanoseconds += span.end - span.begin;
  }
  return static_cast<double>(nanoseconds) * 1e-6;
}

}  // namespace phonebit::engine::gpu
