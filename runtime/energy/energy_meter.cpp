#include "energy/energy_meter.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

double seconds(Clock::time_point time) { return Seconds(time.time_since_epoch()).count(); }

}  // namespace

/// What the meter and its thread have in common. The thread owns a share of it, so that one that hangs in a
/// driver may outlive the meter.
struct Meter::Shared {
  explicit Shared(std::unique_ptr<Source> opened) : source(std::move(opened)), trace(source->info()) {}

  const std::unique_ptr<Source> source;  // the thread's while it runs
  std::mutex mutex;                      // of all below
  std::condition_variable wake, news;    // to the thread, from the thread
  Trace trace;
  Clock::time_point asked_at, read_at;  // when a reading was asked for, when the last one began
  std::exception_ptr error;
  bool is_ending = false, is_running = false;

  void work();
  bool has_read(std::unique_lock<std::mutex>& lock, Clock::time_point earliest, double answer_s);
};

void Meter::Shared::work() {
  std::unique_lock<std::mutex> lock(mutex);
  try {
    while (!is_ending) {
      const Clock::time_point begin = Clock::now();
      lock.unlock();
      const std::vector<double> reading = source->read();
      lock.lock();
      trace.add(seconds(begin), reading);
      read_at = begin;
      news.notify_all();
      // After the reading, not since its begin: a slow driver shall not be kept busy by being measured.
      wake.wait_for(lock, Seconds(source->info().period_s), [&] { return is_ending || asked_at > read_at; });
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error = std::current_exception();
  }
  is_running = false;
  news.notify_all();
}

/// Waits for a reading that began at `earliest` or later; false if there is none within `answer_s`.
bool Meter::Shared::has_read(std::unique_lock<std::mutex>& lock, Clock::time_point earliest,
                             double answer_s) {
  const auto is_there = [&] { return error || read_at >= earliest; };
  if (!news.wait_for(lock, Seconds(answer_s), is_there)) return false;
  if (error) std::rethrow_exception(error);
  return true;
}

Meter::Meter(std::unique_ptr<Source> source, double answer_s)
    : shared_(std::make_shared<Shared>(std::move(source))), answer_s_(answer_s) {}

Meter::~Meter() {
  if (!end()) thread_.detach();
}

const SourceInfo& Meter::info() const noexcept { return shared_->source->info(); }

void Meter::start() {
  if (!end()) fail_to_answer();
  shared_->trace = Trace(info());
  shared_->error = nullptr;
  shared_->is_ending = false;
  shared_->is_running = true;
  // The thread begins with a reading, so none is asked for here.
  const Clock::time_point begin = Clock::now();
  try {
    thread_ = std::thread([shared = shared_] { shared->work(); });
  } catch (const std::system_error& error) {
    shared_->is_running = false;
    fail(ErrorCode::device, "%s: cannot start a thread: %s", info().name.c_str(), error.what());
  }
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (!shared_->has_read(lock, begin, answer_s_)) fail_to_answer();
}

Span Meter::peek() {
  if (!thread_.joinable())
    fail(ErrorCode::input, "%s: the meter has not been started; start it before the work",
         info().name.c_str());
  read_now();
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->trace.span();
}

Span Meter::read() {
  Span span = peek();
  check_goes_on(span, info().name);
  if (span.changes < 2 || span.energy_mj <= 0.0)
    fail(ErrorCode::device,
         "%s: the source shows nothing new (expected readings that change twice or more, got %zu changes, "
         "%g mJ in %.3g s); choose another source, or measure longer",
         info().name.c_str(), span.changes, span.energy_mj, span.window_s);
  return span;
}

Span Meter::stop() {
  Span span;
  try {
    span = read();
  } catch (...) {
    end();
    throw;
  }
  if (!end()) fail_to_answer();
  return span;
}

/// Has the thread read the source, and waits until it has.
void Meter::read_now() {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->asked_at = Clock::now();
  shared_->wake.notify_all();
  if (!shared_->has_read(lock, shared_->asked_at, answer_s_)) fail_to_answer();
}

/// Ends the thread, if there is one; false where it does not answer.
bool Meter::end() {
  if (!thread_.joinable()) return true;
  {
    std::unique_lock<std::mutex> lock(shared_->mutex);
    shared_->is_ending = true;
    shared_->wake.notify_all();
    if (!shared_->news.wait_for(lock, Seconds(answer_s_), [&] { return !shared_->is_running; })) return false;
  }
  thread_.join();
  return true;
}

void Meter::fail_to_answer() const {
  fail(ErrorCode::device,
       "%s: the source does not answer (expected a reading within %g s); choose another source, or "
       "restart its driver",
       info().name.c_str(), answer_s_);
}

}  // namespace phonebit::engine::energy
