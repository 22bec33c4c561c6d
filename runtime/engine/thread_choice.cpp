#include "engine/thread_choice.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "threads/affinity.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kCopyingThreads = 8;  // no more on an H100 with 16 processors

std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text.empty() ? "none, as this system does not tell" : text;
}

/// How long workers wait awake. For performance beyond the time between two frames of a camera, so that they
/// sleep only when the camera does.
std::chrono::microseconds spin_time(Hint hint) {
  switch (hint) {
    case Hint::performance:
      return std::chrono::milliseconds(50);
    case Hint::power:
      return std::chrono::microseconds(0);
    case Hint::none:
      break;
  }
  return threads::ThreadPool::kSpinTime;
}

}  // namespace

std::vector<int> choose_cores(const Options& options) {
  if (options.core_list.empty() && options.cores == Cores::any) return {};
  return choose_cores(options, threads::online_processors(), threads::allowed_processors());
}

std::vector<int> choose_cores(const Options& options, const std::vector<threads::Processor>& online,
                              const std::vector<int>& allowed) {
  const auto is_allowed = [&](int processor) {
    return std::find(allowed.begin(), allowed.end(), processor) != allowed.end();
  };
  for (const int processor : options.core_list) {
    if (!is_allowed(processor))
      fail(ErrorCode::input,
           "cores: processor %d does not exist, is offline, or is not this thread's to use; choose from: %s",
           processor, list_text(allowed).c_str());
  }
  std::vector<int> chosen = options.core_list;
  if (chosen.empty() && options.cores != Cores::any) {
    const bool is_big = options.cores == Cores::big;
    for (const threads::Processor& processor : online) {
      if ((is_big ? processor.is_big : processor.is_little) && is_allowed(processor.index))
        chosen.push_back(processor.index);
    }
    if (chosen.empty())
      fail(ErrorCode::input, "cores: none of the %s processors is this thread's to use; it may use: %s",
           is_big ? "big" : "little", list_text(allowed).c_str());
  }
  const std::set<int> ordered(chosen.begin(), chosen.end());
  return {ordered.begin(), ordered.end()};
}

namespace {

std::shared_ptr<threads::ThreadPool> make_pool_of(const Options& options, int max_threads) {
  const int threads = options.threads;
  if (threads < 0 || threads > kMaxThreads)
    fail(ErrorCode::input, "threads: got %d, expected 0 (all processors) to %d", threads, kMaxThreads);
  std::vector<int> cores = choose_cores(options);
  const int processors = cores.empty() ? threads::available_processors() : static_cast<int>(cores.size());
  return std::make_shared<threads::ThreadPool>(std::min(threads > 0 ? threads : processors, max_threads),
                                               std::move(cores), spin_time(options.hint));
}

}  // namespace

std::shared_ptr<threads::ThreadPool> make_pool(const Options& options) {
  return make_pool_of(options, kMaxThreads);
}

std::shared_ptr<threads::ThreadPool> make_copying_pool(const Options& options) {
  return make_pool_of(options, kCopyingThreads);
}

}  // namespace phonebit::engine
