// What the opaque handles of the C interface are.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/network.h"
#include "jobs.h"
#include "memory/aligned_buffer.h"
#include "phonebit/phonebit_c.h"

struct phonebit_options {
  phonebit::engine::Options options;
  /// What the C interface promises without options.
  phonebit_options() { options.device = "auto"; }
};

namespace phonebit::engine::c_api {

/// Warnings as texts that stay where they are: the engine only ever adds some.
struct Warnings {
  std::mutex mutex;
  std::list<std::string> texts;
};

/// The options of a handle, or the defaults of the C interface.
inline Options options_of(const phonebit_options* handle) {
  return handle != nullptr ? handle->options : phonebit_options().options;
}

}  // namespace phonebit::engine::c_api

struct phonebit_network {
  /// Of a network built in memory, which uses it in place.
  const phonebit::engine::memory::AlignedBuffer file;
  phonebit::engine::Network network;
  // Texts that callers hold on to.
  const std::string device, plan_key;
  phonebit::engine::c_api::Warnings warnings;
  std::vector<phonebit::engine::DispatchInfo> dispatches;
  /// Last, so that it ends first: jobs use the network.
  phonebit::engine::c_api::JobQueue jobs;

  explicit phonebit_network(phonebit::engine::Network&& loaded,
                            phonebit::engine::memory::AlignedBuffer&& built = {})
      : file(std::move(built)),
        network(std::move(loaded)),
        device(network.device()),
        plan_key(network.plan_key()),
        jobs(network) {}
};
