#include "gpu/program_cache.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

std::atomic<void (*)()> compile_hook{nullptr};

/// In place of a binary.
constexpr const char* kKeptByDriver = "kept by the driver";

/// Everything that a binary depends on, each part with its length in front so that no two lists make one key.
std::string store_key(const Device& device, const ProgramSource& source) {
  std::string key;
  const DeviceFacts& facts = device.facts();
  for (const std::string& part :
       {facts.key(), facts.vendor_name, facts.version, device.build_options(source.language), source.text})
    key += std::to_string(part.size()) + ":" + part + "\n";
  return key;
}

}  // namespace

void set_compile_hook(void (*hook)()) { compile_hook = hook; }

ProgramCache::ProgramCache(std::shared_ptr<Device> device, std::string directory)
    : device_(std::move(device)), store_(std::move(directory)) {}

std::unique_ptr<Kernel> ProgramCache::kernel(const std::string& name, const std::string& text,
                                             Language language) {
  const ProgramSource source{name, text, language};
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Entry>& slot = programs_[device_->build_options(language) + "\n" + text];
    if (slot == nullptr) slot = std::make_shared<Entry>();
    entry = slot;
  }
  const std::lock_guard<std::mutex> lock(entry->mutex);
  if (!entry->program) entry->program = load_or_build(source);
  return entry->program->kernel(source);
}

std::string_view ProgramCache::kept(const std::string& text) const {
  const std::string& options = device_->build_options(Language::core);
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::string_view(programs_.find(options + "\n" + text)->first).substr(options.size() + 1);
}

StartupInfo ProgramCache::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

std::unique_ptr<Program> ProgramCache::load_or_build(const ProgramSource& source) {
  const std::string key = store_key(*device_, source);
  const StoredBinary stored = store_.load(key);
  const bool is_kept = stored.binary && *stored.binary == kKeptByDriver;
  if (stored.binary && !is_kept) {
    if (std::unique_ptr<Program> program = device_->load(source, *stored.binary)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++statistics_.programs_loaded;
      return program;
    }
  }
  void (*const hook)() = compile_hook;
  if (!is_kept && hook) hook();
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Program> program = device_->compile(source);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (!is_kept) store_.store(key, device_->facts().keeps_programs ? kKeptByDriver : program->binary());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_kept) {
    ++statistics_.programs_loaded;
    return program;
  }
  ++statistics_.programs_built;
  statistics_.cache_entries_rejected += stored.is_rejected || stored.binary ? 1 : 0;
  statistics_.build_ms += took.count();
  return program;
}

std::string cache_directory(const std::string& configured) {
  if (!configured.empty()) return configured;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string named = variable("PHONEBIT_CACHE_DIR"); !named.empty()) return named;
  // The XDG specification has relative paths ignored.
  if (const std::string base = variable("XDG_CACHE_HOME"); base[0] == '/') return base + "/phonebit";
#if defined(_WIN32)
  constexpr const char* kHome = "USERPROFILE";
#else
  constexpr const char* kHome = "HOME";
#endif
  if (const std::string home = variable(kHome); !home.empty()) return home + "/.cache/phonebit";
  return "";
}

}  // namespace phonebit::engine::gpu
