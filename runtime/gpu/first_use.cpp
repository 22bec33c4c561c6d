#include "gpu/first_use.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>

#include "system/calls.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

constexpr long long kPauseSeconds = 3600;
constexpr int kMaxTries = 2;

thread_local bool is_in_use = false;

/// What the file says: uses that began and did not end, and when the last one did, in seconds.
struct Tries {
  int count = 0;
  long long last = 0;
};

/// A file of another content counts as none: the process may have ended before it was written.
Tries read(int descriptor) {
  char text[32] = {};
  const char* const end = text + std::max<int64_t>(system::read_at(descriptor, text, sizeof text, 0), 0);
  Tries tries;
  const auto count = std::from_chars(text, end, tries.count);
  if (count.ptr == end || tries.count <= 0) return {};
  std::from_chars(count.ptr + 1, end, tries.last);
  tries.count = std::min(tries.count, kMaxTries);
  return tries;
}

long long seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

FirstUse::FirstUse(const BinaryStore& store, const std::string& key, bool is_forced)
    : path_(store.path("first use\n" + key)), is_outer_(!is_in_use) {
  if (!is_outer_) return;
  is_in_use = true;
  descriptor_ = store.open_alone(path_);
  if (descriptor_ < 0) return;
  const Tries before = read(descriptor_);
  const long long now = seconds_now();
  // A clock that was set back must not make an hour longer.
  const bool is_recent = before.last <= now && now - before.last < kPauseSeconds;
  if (!is_forced && before.count > 0 && (is_recent || before.count >= kMaxTries)) {
    refusal_ = format_text(before.count < kMaxTries ? "the process ended during its first use, perhaps "
                                                      "because the driver crashed; it is tried again an "
                                                      "hour after that, or when %s is deleted"
                                                    : "the process ended during its first use more than "
                                                      "once, so the driver seems to crash; it is tried "
                                                      "again with another driver, or when %s is deleted",
                           path_.c_str());
    ::close(descriptor_);
    descriptor_ = -1;
    return;
  }
  // Never shorter than what it replaces. Where it cannot be written, the disk is full: then nothing protects.
  const std::string text = format_text("%d %lld\n", before.count + 1, now);
  if (::write(descriptor_, text.data(), static_cast<unsigned>(text.size())) < 0) return;
}

FirstUse::~FirstUse() {
  if (is_outer_) is_in_use = false;
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  system::remove(path_);
}

}  // namespace phonebit::engine::gpu
