// Commands and their events.
#include "opencl/cl_functions.h"
#include "opencl/context.h"

namespace phonebit::engine::opencl {
namespace {

/// Of a command, or of the host: a user event.
class Event final : public gpu::HostEvent {
 public:
  explicit Event(Handle<cl_event> owned) : event_(std::move(owned)) {}

  cl_event get() const { return event_.get(); }
  bool is_over() const override {
    cl_int status = CL_QUEUED;
    api().clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status == CL_COMPLETE;
  }
  void wait() const override {
    const cl_event event = get();
    check(api().clWaitForEvents(1, &event), "clWaitForEvents");
  }
  void complete() override { check(api().clSetUserEventStatus(get(), CL_COMPLETE), "clSetUserEventStatus"); }
  gpu::EventSpan span() const override {
    return {at(CL_PROFILING_COMMAND_QUEUED), at(CL_PROFILING_COMMAND_START), at(CL_PROFILING_COMMAND_END)};
  }

 private:
  uint64_t at(cl_uint which) const {
    uint64_t nanoseconds = 0;
    check(api().clGetEventProfilingInfo(get(), which, sizeof nanoseconds, &nanoseconds, nullptr),
          "clGetEventProfilingInfo");
    return nanoseconds;
  }

  Handle<cl_event> event_;
};

/// The event of one command, which goes into a list when the command is enqueued.
class NewEvent {
 public:
  explicit NewEvent(gpu::Events* events) : events_(events) {}
  cl_event* out() { return events_ != nullptr ? event_.out() : nullptr; }
  void keep(cl_int status, const char* function) {
    check(status, function);
    if (events_ != nullptr) events_->push_back(std::make_unique<Event>(std::move(event_)));
  }

 private:
  gpu::Events* events_;
  Handle<cl_event> event_;
};

/// A region of a buffer as the "Rect" commands want it.
struct Rect {
  size_t origin[3], region[3];
  size_t pitch;

  explicit Rect(const gpu::Region& bytes)
      : origin{bytes.offset % bytes.pitch, bytes.offset / bytes.pitch, 0},
        region{bytes.run_bytes, bytes.runs, 1},
        pitch(bytes.pitch) {}
};

}  // namespace

void Queue::launch(const gpu::Kernel& kernel, const gpu::WorkSize& size, gpu::Events* events) {
  NewEvent event(events);
  event.keep(api().clEnqueueNDRangeKernel(get(), object_of(kernel), size.dimensions, nullptr, size.global,
                                          size.local, 0, nullptr, event.out()),
             "clEnqueueNDRangeKernel");
}

void Queue::copy(const gpu::DeviceMemory& from, size_t from_offset, const gpu::DeviceMemory& to,
                 size_t to_offset, size_t bytes) {
  check(api().clEnqueueCopyBuffer(get(), object_of(from), object_of(to), from_offset, to_offset, bytes, 0,
                                  nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

void Queue::copy_to_image(const gpu::DeviceMemory& from, const gpu::DeviceMemory& image, size_t width,
                          size_t first_row, size_t rows, gpu::Events* events) {
  constexpr size_t kTexelBytes = 16;
  const size_t origin[3] = {0, first_row, 0}, region[3] = {width, rows, 1};
  NewEvent event(events);
  event.keep(api().clEnqueueCopyBufferToImage(get(), object_of(from), object_of(image),
                                              first_row * width * kTexelBytes, origin, region, 0, nullptr,
                                              event.out()),
             "clEnqueueCopyBufferToImage");
}

// Whole rows are one run, whose pitch is its length: then an origin in rows need not be a whole number of pitches.

void Queue::write(const gpu::DeviceMemory& to, const gpu::Region& region, const std::byte* host,
                  bool must_wait) {
  const cl_bool waits = must_wait ? 1 : 0;
  if (region.runs == 1)
    return check(api().clEnqueueWriteBuffer(get(), object_of(to), waits, region.offset, region.run_bytes,
                                            host + region.offset, 0, nullptr, nullptr),
                 "clEnqueueWriteBuffer");
  const Rect rect(region);
  check(api().clEnqueueWriteBufferRect(get(), object_of(to), waits, rect.origin, rect.origin, rect.region,
                                       rect.pitch, 0, rect.pitch, 0, host, 0, nullptr, nullptr),
        "clEnqueueWriteBufferRect");
}

void Queue::read(const gpu::DeviceMemory& from, const gpu::Region& region, std::byte* host, bool must_wait,
                 gpu::Events* events) {
  const cl_bool waits = must_wait ? 1 : 0;
  NewEvent event(events);
  if (region.runs == 1)
    return event.keep(
        api().clEnqueueReadBuffer(get(), object_of(from), waits, region.offset, region.run_bytes,
                                  host + region.offset, 0, nullptr, event.out()),
        "clEnqueueReadBuffer");
  const Rect rect(region);
  event.keep(
      api().clEnqueueReadBufferRect(get(), object_of(from), waits, rect.origin, rect.origin, rect.region,
                                    rect.pitch, 0, rect.pitch, 0, host, 0, nullptr, event.out()),
      "clEnqueueReadBufferRect");
}

std::byte* Queue::map(const gpu::DeviceMemory& memory, MapUse use, size_t begin, size_t bytes, bool must_wait,
                      gpu::Events* events) {
  const cl_bitfield flags = use == MapUse::read    ? CL_MAP_READ
                            : use == MapUse::write ? CL_MAP_WRITE_INVALIDATE_REGION
                                                   : CL_MAP_READ | CL_MAP_WRITE;
  NewEvent event(events);
  cl_int status = CL_SUCCESS;
  void* const host = api().clEnqueueMapBuffer(get(), object_of(memory), must_wait ? 1 : 0, flags, begin,
                                              bytes, 0, nullptr, event.out(), &status);
  event.keep(status, "clEnqueueMapBuffer");
  return static_cast<std::byte*>(host);
}

void Queue::unmap(const gpu::DeviceMemory& memory, std::byte* address) {
  check(api().clEnqueueUnmapMemObject(get(), object_of(memory), address, 0, nullptr, nullptr),
        "clEnqueueUnmapMemObject");
}

void Queue::mark(gpu::Events& events) {
  NewEvent event(&events);
  event.keep(api().clEnqueueMarkerWithWaitList(get(), 0, nullptr, event.out()),
             "clEnqueueMarkerWithWaitList");
}

void Queue::wait_for(const gpu::Event& event) {
  const cl_event object = static_cast<const Event&>(event).get();
  check(api().clEnqueueBarrierWithWaitList(get(), 1, &object, nullptr), "clEnqueueBarrierWithWaitList");
}

void Queue::flush() { check(api().clFlush(get()), "clFlush"); }
void Queue::finish() { check(api().clFinish(get()), "clFinish"); }

std::unique_ptr<gpu::HostEvent> Context::new_host_event() const {
  cl_int status = CL_SUCCESS;
  Handle<cl_event> event(api().clCreateUserEvent(get(), &status));
  check(status, "clCreateUserEvent");
  return std::make_unique<Event>(std::move(event));
}

}  // namespace phonebit::engine::opencl
