#include "coexec/event_synchronizer.h"

#include "types/fail.h"

namespace phonebit::engine::coexec {

EventSynchronizer::EventSynchronizer(opencl::Context& context, bool uses_user_events)
    : context_(context), uses_user_events_(uses_user_events) {}

void EventSynchronizer::begin(int stages) {
  release();
  gpu_events_.clear();
  gpu_events_.resize(static_cast<size_t>(stages));
  user_events_.clear();
  user_events_.resize(uses_user_events_ ? static_cast<size_t>(stages) : 0);
  finished_ = -1;
}

void EventSynchronizer::enqueue_point(int cpu_stage, int awaited) {
  const cl_command_queue queue = context_.queue();
  if (cpu_stage >= 0)
    check(api().clEnqueueMarkerWithWaitList(queue, 0, nullptr,
                                            gpu_events_[static_cast<size_t>(cpu_stage)].out()),
          "clEnqueueMarkerWithWaitList");
  if (awaited < 0 || awaited <= finished_ || !uses_user_events_) return;
  Handle<cl_event>& event = user_events_[static_cast<size_t>(awaited)];
  if (!event) {
    cl_int status = 0;
    event = Handle<cl_event>(api().clCreateUserEvent(context_.get(), &status));
    check(status, "clCreateUserEvent");
  }
  const cl_event waited_for = event.get();
  check(api().clEnqueueBarrierWithWaitList(queue, 1, &waited_for, nullptr), "clEnqueueBarrierWithWaitList");
}

void EventSynchronizer::wait_for_gpu(int cpu_stage) {
  const cl_event event = gpu_events_[static_cast<size_t>(cpu_stage)].get();
  check(api().clWaitForEvents(1, &event), "clWaitForEvents", context_.device().name.c_str());
}

void EventSynchronizer::finish_cpu(int stage) {
  finished_ = stage;
  if (!uses_user_events_ || !user_events_[static_cast<size_t>(stage)]) return;
  check(api().clSetUserEventStatus(user_events_[static_cast<size_t>(stage)].get(), CL_COMPLETE),
        "clSetUserEventStatus");
}

void EventSynchronizer::release() noexcept {
  for (size_t i = 0; i < user_events_.size(); ++i)
    if (user_events_[i] && static_cast<int>(i) > finished_)
      api().clSetUserEventStatus(user_events_[i].get(), CL_COMPLETE);
}

}  // namespace phonebit::engine::coexec
