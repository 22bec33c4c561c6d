// The threads on which a network runs.
#pragma once

#include <memory>
#include <vector>

#include "threads/processor_topology.h"
#include "threads/thread_pool.h"
#include "types/options.h"

namespace phonebit::engine {

/// The processors that Options::cores and core_list stand for; none: any. Throws Error(input), listing those
/// that the calling thread may use, when one of the list, or every one of the kind, is not among them.
std::vector<int> choose_cores(const Options& options);
/// The same among processors that are given.
std::vector<int> choose_cores(const Options& options, const std::vector<threads::Processor>& online,
                              const std::vector<int>& allowed);

/// Threads of the number, on the processors and of the spin time that the options ask for; where they give no
/// number, one for each of those processors. Throws Error(input) when it is out of range, and as
/// choose_cores.
std::shared_ptr<threads::ThreadPool> make_pool(const Options& options);
/// The same, but no more than it takes to copy a batch as fast as memory allows.
std::shared_ptr<threads::ThreadPool> make_copying_pool(const Options& options);

}  // namespace phonebit::engine
