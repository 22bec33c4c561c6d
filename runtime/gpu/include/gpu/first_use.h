// Drivers may end the process: what did is not used again.
#pragma once

#include <string>

#include "gpu/binary_store.h"

namespace phonebit::engine::gpu {

/// While it lives, a file says that something is used for the first time, which may end the process. A file that
/// a process left tells that this happened, but not why: the driver may have crashed, or a user may have killed the
/// process. So the first time counts for an hour, the second time until the file is deleted.
///
/// Within another one of the same thread it does nothing: the outer one tells enough.
class FirstUse {
 public:
  /// `key`: what is used, and with which driver. `is_forced`: try whatever happened. Without a folder, or while another
  /// process that lives does the same, there is no file.
  FirstUse(const BinaryStore& store, const std::string& key, bool is_forced = false);
  ~FirstUse();
  FirstUse(const FirstUse&) = delete;
  FirstUse& operator=(const FirstUse&) = delete;

  /// Why it must not be used, as a sentence; empty where it may be.
  const std::string& refusal() const { return refusal_; }

 private:
  std::string path_, refusal_;
  int descriptor_ = -1;  // of the file; -1: none, or it stays
  bool is_outer_;
};

}  // namespace phonebit::engine::gpu
