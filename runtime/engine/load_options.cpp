#include "engine/load_options.h"

#include <algorithm>
#include <new>

#include "system/calls.h"
#include "threads/affinity.h"
#include "types/fail.h"

namespace phonebit::engine {

Options with_limits(Options options) {
  constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
  if (options.max_memory_bytes == 0)
    options.max_memory_bytes = std::min(kMaxBytes, system::physical_bytes() / 2);
  if (options.max_work == 0.0) options.max_work = 1e12 * threads::available_processors();
  return options;
}

void fail_to_load(const std::string& source) {
  try {
    throw;
  } catch (const Error& error) {
    fail(error.code(), "%s: %s", source.c_str(), error.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::device, "%s: not enough memory to load the model", source.c_str());
  }
}

}  // namespace phonebit::engine
