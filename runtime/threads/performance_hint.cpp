#include "threads/performance_hint.h"

#include <algorithm>
#include <vector>

#include "system/calls.h"
#include "threads/affinity.h"

namespace phonebit::engine::threads {
namespace {

/// The duration to aim at, as a share of the fastest one so far: below it, so that the system never finds
/// that it gives enough.
int64_t target_ns(int64_t fastest_ns) { return std::max<int64_t>(fastest_ns / 10 * 9, 1); }

template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(system::find_symbol(library, name));
  return function != nullptr;
}

}  // namespace

/// What android/performance_hint.h declares.
struct PerformanceHint::Functions {
  void* library = nullptr;
  void* manager = nullptr;
  void* (*get_manager)() = nullptr;
  void* (*create_session)(void* manager, const int32_t* threads, size_t count, int64_t target_ns) = nullptr;
  int (*update_target)(void* session, int64_t target_ns) = nullptr;
  int (*report_actual)(void* session, int64_t actual_ns) = nullptr;
  void (*close_session)(void* session) = nullptr;

  Functions() = default;
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() {
    if (library != nullptr) system::unload_library(library);
  }

  /// False where something is missing.
  bool load(const char* name) {
    std::string problem;
    library = system::load_library(name, problem);
    if (library == nullptr || !find_function(library, "APerformanceHint_getManager", get_manager) ||
        !find_function(library, "APerformanceHint_createSession", create_session) ||
        !find_function(library, "APerformanceHint_updateTargetWorkDuration", update_target) ||
        !find_function(library, "APerformanceHint_reportActualWorkDuration", report_actual) ||
        !find_function(library, "APerformanceHint_closeSession", close_session))
      return false;
    manager = get_manager();
    return manager != nullptr;
  }
};

PerformanceHint::PerformanceHint(const char* library) : functions_(std::make_unique<Functions>()) {
  if (!functions_->load(library)) functions_ = nullptr;
}

PerformanceHint::~PerformanceHint() { close_session(); }

void PerformanceHint::report(const ThreadPool& pool, std::chrono::nanoseconds duration) {
  if (functions_ == nullptr) return;
  const bool is_faster = duration.count() < fastest_ns_;
  fastest_ns_ = std::min<int64_t>(fastest_ns_, duration.count());
  const int caller = this_thread_number();
  if (caller != caller_)
    open_session(pool, caller);
  else if (session_ != nullptr && is_faster)
    functions_->update_target(session_, target_ns(fastest_ns_));
  if (session_ != nullptr) functions_->report_actual(session_, duration.count());
}

void PerformanceHint::open_session(const ThreadPool& pool, int caller) {
  close_session();
  std::vector<int32_t> threads = pool.worker_numbers();
  if (std::find(threads.begin(), threads.end(), 0) != threads.end()) return;  // not yet started: next time
  threads.push_back(caller);
  // Refused where the device has no support; asking again would not help.
  session_ =
      functions_->create_session(functions_->manager, threads.data(), threads.size(), target_ns(fastest_ns_));
  caller_ = caller;
}

void PerformanceHint::close_session() {
  if (session_ != nullptr) functions_->close_session(session_);
  session_ = nullptr;
  caller_ = 0;
}

}  // namespace phonebit::engine::threads
