// Kernels from source, through a cache of program binaries on disk.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/binary_store.h"
#include "gpu/device.h"
#include "types/network_state.h"

namespace phonebit::engine::gpu {

/// One for a Device. A disk entry holds its whole key (program text, options, device, driver) with the
/// binary and a checksum, so neither a damaged file nor a collision of names can pass for another program;
/// files are written under a temporary name and renamed. An unusable directory means no disk cache, silently.
/// Thread-safe.
class ProgramCache {
 public:
  /// `directory`: empty for no disk cache; created on the first write. Where the driver keeps what it compiles, an
  /// entry only tells that it has: PoCL would compile each kernel once more, for groups of any size, to give its
  /// binary.
  ProgramCache(std::shared_ptr<Device> device, std::string directory);

  /// The kernel `name` of a program text; a new kernel object for each call (arguments are state), programs
  /// are shared. Throws as Device::compile.
  std::unique_ptr<Kernel> kernel(const std::string& name, const std::string& text,
                                 Language language = Language::core);
  /// A text that kernel() was called with, as the cache keeps it: valid while the cache lives.
  std::string_view kept(const std::string& text) const;

  /// What became of programs: the others of its numbers are 0.
  StartupInfo statistics() const;

 private:
  /// One program; its mutex lets the second thread that wants it wait for the first instead of building it
  /// again.
  struct Entry {
    std::mutex mutex;
    std::unique_ptr<Program> program;
  };

  std::unique_ptr<Program> load_or_build(const ProgramSource& source);

  std::shared_ptr<Device> device_;
  BinaryStore store_;
  mutable std::mutex mutex_;                                // of what follows
  std::map<std::string, std::shared_ptr<Entry>> programs_;  // by build options and text
  StartupInfo statistics_;
};

/// Compiling takes seconds: people who wait can be told. `hook` is called before each program that the cache
/// does not have is compiled, on the thread that loads. Null: nothing is called. It counts for all networks
/// of the process.
void set_compile_hook(void (*hook)());

/// Where caches live: `configured`, else PHONEBIT_CACHE_DIR, else XDG_CACHE_HOME/phonebit, else
/// HOME/.cache/phonebit, else empty.
std::string cache_directory(const std::string& configured);

}  // namespace phonebit::engine::gpu
