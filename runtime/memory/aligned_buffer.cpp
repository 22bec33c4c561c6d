#include "memory/aligned_buffer.h"

#include "memory/arena_plan.h"
#include "system/calls.h"
#include "types/fail.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace phonebit::engine::memory {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size, const char* what) {
  if (size == 0) return;
  const bool is_large = size >= 2 * kHugePage;
  void* const address = system::allocate(is_large ? kHugePage : kArenaAlignment, size);
  if (address == nullptr) fail(ErrorCode::device, "not enough memory: %zu bytes for %s", size, what);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Only a hint, so its result does not matter.
  if (is_large) static_cast<void>(::madvise(address, size / kHugePage * kHugePage, MADV_HUGEPAGE));
#endif
  data_ = static_cast<std::byte*>(address);
  size_ = size;
}

AlignedBuffer::~AlignedBuffer() { system::release(data_); }

}  // namespace phonebit::engine::memory
