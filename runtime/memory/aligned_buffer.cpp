#include "memory/aligned_buffer.h"

#include <algorithm>

#include "memory/arena_plan.h"
#include "system/calls.h"
#include "types/fail.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace phonebit::engine::memory {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

/// Bytes of huge pages for `size` bytes; the last page is at least half full.
constexpr size_t huge_bytes([[maybe_unused]] size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  return (size + kHugePage / 2) / kHugePage * kHugePage;
#else
  return 0;
#endif
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size, const char* what) {
  if (size == 0) return;
  const size_t huge = huge_bytes(size);
  void* const address = system::allocate(huge > 0 ? kHugePage : kArenaAlignment, std::max(size, huge));
  if (address == nullptr) fail(ErrorCode::device, "not enough memory: %zu bytes for %s", size, what);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Only a hint, so its result does not matter.
  if (huge > 0) static_cast<void>(::madvise(address, huge, MADV_HUGEPAGE));
#endif
  data_ = static_cast<std::byte*>(address);
  size_ = size;
}

AlignedBuffer::~AlignedBuffer() { system::release(data_); }

}  // namespace phonebit::engine::memory
