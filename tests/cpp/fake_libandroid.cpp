// Stands in for Android's libandroid.so: performance hint sessions that write down what they are told.
#include <cstdint>
#include <cstdlib>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::string journal;
int open_sessions = 0;

void note(const std::string& line) { journal += line + "\n"; }

}  // namespace

/// What the sessions were told so far, a line a call.
EXPORT const char* fake_android_journal() { return journal.c_str(); }

EXPORT void* APerformanceHint_getManager() {
  return std::getenv("FAKE_ANDROID_NO_MANAGER") != nullptr ? nullptr : &journal;
}

EXPORT void* APerformanceHint_createSession(void* manager, const int32_t* threads, size_t count,
                                            int64_t target_ns) {
  if (manager != &journal || std::getenv("FAKE_ANDROID_NO_SESSION") != nullptr) return nullptr;
  std::string line = "create " + std::to_string(target_ns) + ":";
  for (size_t i = 0; i < count; ++i) line += " " + std::to_string(threads[i]);
  note(line);
  return ++open_sessions == 1 ? &open_sessions : nullptr;
}

EXPORT int APerformanceHint_updateTargetWorkDuration(void* session, int64_t target_ns) {
  note("target " + std::to_string(target_ns));
  return session == &open_sessions ? 0 : 22;
}

EXPORT int APerformanceHint_reportActualWorkDuration(void* session, int64_t actual_ns) {
  note("actual " + std::to_string(actual_ns));
  return session == &open_sessions ? 0 : 22;
}

EXPORT void APerformanceHint_closeSession(void* session) {
  note(session == &open_sessions ? "close" : "close of another session");
  --open_sessions;
}
