#include "jobs.h"

#include <system_error>

#include "arguments.h"
#include "buffers.h"
#include "handles.h"
#include "status.h"
#include "threads/fork_generation.h"
#include "types/fail.h"

namespace phonebit::engine::c_api {

template <class Step>
void Job::attempt(const Step& step) noexcept {
  if (result_ != PHONEBIT_OK) return;
  result_ = guarded([&] {
    // A request between the engine's look at its count of cancellations and here would be lost, hence the
    // look at the flag on both sides of the step.
    if (!is_cancelled_.load()) step();
    if (is_cancelled_.load()) fail(ErrorCode::cancelled, "the pass was cancelled; its results are undefined");
  });
  if (result_ == PHONEBIT_OK) return;
  // A copy: what `done` calls may fail, and change this thread's last error. A short text needs no memory.
  if (guarded([&] { error_ = phonebit_last_error(); }) != PHONEBIT_OK) error_ = "no memory";
}

void Job::begin(Network& network) noexcept {
  attempt([&] { begun_ = network.begin(inference_.inputs, inference_.outputs, inference_.batch); });
}

void Job::finish(Network& network) noexcept {
  attempt([&] { network.finish(*begun_); });
  begun_.reset();
  if (inference_.done != nullptr) inference_.done(inference_.user, result_, error_.c_str());
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = result_;
  done_.notify_all();
}

phonebit_status Job::wait(std::chrono::milliseconds timeout) {
  if (generation_ != threads::fork_generation())
    fail(ErrorCode::device, "the pass runs in the process that this one was forked from; wait for it there");
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_done = [&] { return status_ != PHONEBIT_PENDING; };
  if (timeout.count() < 0)
    done_.wait(lock, is_done);
  else
    done_.wait_for(lock, timeout, is_done);
  return status_;
}

JobQueue::~JobQueue() {
  if (is_in_forked_child()) {
    // What the thread seems to hold and to wait for cannot be destroyed without waiting for it.
    own_->thread.detach();
    static_cast<void>(own_.release());
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(own_->mutex);
    own_->is_stopping = true;
  }
  cancel();
  own_->woken.notify_all();
  if (own_->thread.joinable()) own_->thread.join();
}

bool JobQueue::is_in_forked_child() const {
  const unsigned started = started_.load();
  return started != 0 && started != threads::fork_generation() + 1;
}

std::shared_ptr<Job> JobQueue::add(Inference&& inference) {
  auto job = std::make_shared<Job>(std::move(inference));
  if (is_in_forked_child())
    fail(ErrorCode::device,
         "the network's thread for passes in the background stayed in the process that this one was forked "
         "from; "
         "load the network again");
  const std::lock_guard<std::mutex> lock(own_->mutex);
  if (own_->is_stopping) fail(ErrorCode::cancelled, "the network is being destroyed");
  if (!own_->thread.joinable()) {
    try {
      own_->thread = std::thread([this] { work(); });
      started_.store(threads::fork_generation() + 1);
    } catch (const std::system_error& error) {
      fail(ErrorCode::device, "no thread for passes in the background: %s", error.what());
    }
  }
  own_->waiting.push_back(job);
  own_->woken.notify_all();
  return job;
}

void JobQueue::cancel() {
  if (!is_in_forked_child()) {
    const std::lock_guard<std::mutex> lock(own_->mutex);
    for (const std::shared_ptr<Job>& job : own_->waiting) job->cancel();
    for (const std::shared_ptr<Job>& job : {own_->begun, own_->running})
      if (job != nullptr) job->cancel();
  }
  network_.cancel();
}

void JobQueue::work() {
  Shared& own = *own_;
  std::unique_lock<std::mutex> lock(own.mutex);
  for (;;) {
    if (own.begun == nullptr) own.woken.wait(lock, [&] { return own.is_stopping || !own.waiting.empty(); });
    own.running = std::move(own.begun);
    if (!own.waiting.empty()) {
      own.begun = std::move(own.waiting.front());
      own.waiting.pop_front();
    }
    if (own.begun == nullptr && own.running == nullptr) return;
    const std::shared_ptr<Job> begun = own.begun, running = own.running;
    lock.unlock();
    if (begun != nullptr) begun->begin(network_);
    if (running != nullptr) running->finish(network_);
    lock.lock();
    own.running.reset();
  }
}

}  // namespace phonebit::engine::c_api

using namespace phonebit::engine::c_api;

phonebit_status phonebit_network_forward_async(phonebit_network* network, const phonebit_input* inputs,
                                               int32_t input_count, const phonebit_output* outputs,
                                               int32_t output_count, int32_t batch, phonebit_done done,
                                               void* user, phonebit_job** job) {
  return guarded([&] {
    phonebit_network& handle = given(network, "network");
    Inference inference{{}, {}, batch, done, user};
    copy_inputs(handle.network, inputs, input_count, inference.inputs);
    copy_outputs(handle.network, outputs, output_count, inference.outputs);
    handle.network.check(inference.inputs, inference.outputs, batch);
    auto own = std::make_unique<phonebit_job>();
    own->job = handle.jobs.add(std::move(inference));
    if (job != nullptr) *job = own.release();
  });
}

phonebit_status phonebit_job_wait(phonebit_job* job, int32_t timeout_ms) {
  phonebit_status status = PHONEBIT_OK;
  const phonebit_status failure = guarded([&] {
    phonebit::engine::c_api::Job& shared = *given(job, "job").job;
    if (timeout_ms < -1)
      phonebit::engine::fail(phonebit::engine::ErrorCode::input, "timeout_ms: got %d, expected at least -1",
                             timeout_ms);
    status = shared.wait(std::chrono::milliseconds(timeout_ms));
    if (status != PHONEBIT_OK && status != PHONEBIT_PENDING) keep_error(shared.error());
  });
  return failure != PHONEBIT_OK ? failure : status;
}

void phonebit_job_destroy(phonebit_job* job) { delete job; }

phonebit_status phonebit_network_cancel(phonebit_network* network) {
  return guarded([&] { given(network, "network").jobs.cancel(); });
}
