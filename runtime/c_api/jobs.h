// Inferences in the background: one thread a network, in the order of the calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/network.h"
#include "phonebit/phonebit_c.h"
#include "threads/fork_generation.h"

namespace phonebit::engine::c_api {

/// What an inference needs, copied from its caller but for the tensors' memory.
struct Inference {
  std::vector<InputBuffer> inputs;
  std::vector<OutputBuffer> outputs;
  int batch;
  phonebit_done done;  ///< may be null
  void* user;
};

/// One inference, shared by the queue and the caller's handle: either may go first. Members may be called from any
/// thread, begin() and finish() once.
class Job {
 public:
  explicit Job(Inference&& inference) : inference_(std::move(inference)) {}

  /// Begins the inference.
  void begin(Network& network) noexcept;
  /// Ends the inference, calls its `done`, and then counts as done.
  void finish(Network& network) noexcept;

  /// Makes PHONEBIT_CANCELLED of a job that is not done. One that has begun also needs Network::cancel.
  void cancel() { is_cancelled_.store(true); }

  /// The status, PHONEBIT_PENDING after the time-out. Never times out where it is negative. Throws
  /// Error(device) in a child of the process that made the job.
  phonebit_status wait(std::chrono::milliseconds timeout);

  /// Why the inference failed; only after wait() has returned that it did.
  const std::string& error() const { return error_; }

 private:
  /// Does a step of the inference, and keeps why it failed. Nothing where one before it did.
  template <class Step>
  void attempt(const Step& step) noexcept;

  Inference inference_;
  std::shared_ptr<Network::Inference> begun_;
  phonebit_status result_ = PHONEBIT_OK;
  const unsigned generation_ = threads::fork_generation();
  std::atomic<bool> is_cancelled_{false};
  std::string error_;
  std::mutex mutex_;
  std::condition_variable done_;
  phonebit_status status_ = PHONEBIT_PENDING;  // the mutex guards it
};

/// The inferences of a network that wait, and the thread that runs them: started by the first of them.
class JobQueue {
 public:
  explicit JobQueue(Network& network) : network_(network) {}
  /// Cancels what runs and waits, and returns when all are done.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Throws Error(cancelled) while this is being destroyed, which a job's `done` can meet; Error(device)
  /// where the system gives no thread, and in a forked child of the process whose thread runs the inferences.
  std::shared_ptr<Job> add(Inference&& inference);

  /// Cancels what runs and waits.
  void cancel();

 private:
  /// What the thread and the callers share.
  struct Shared {
    std::mutex mutex;  // guards all below
    std::condition_variable woken;
    std::list<std::shared_ptr<Job>> waiting;
    std::shared_ptr<Job> begun, running;  // one begins while the one before it is finished
    bool is_stopping = false;
    std::thread thread;
  };

  void work();
  /// Whether the thread belongs to the process that this one was forked from.
  bool is_in_forked_child() const;

  Network& network_;
  std::unique_ptr<Shared> own_ = std::make_unique<Shared>();
  std::atomic<unsigned> started_{0};  // fork generation of the thread, plus 1; 0 before it starts
};

}  // namespace phonebit::engine::c_api

struct phonebit_job {
  std::shared_ptr<phonebit::engine::c_api::Job> job;
};
