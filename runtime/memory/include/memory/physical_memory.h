// How much memory this machine has.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace phonebit::engine::memory {

/// Bytes of physical memory; 4 GiB where the system does not tell.
inline uint64_t physical_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes)
                                     : uint64_t{4} << 30;
}

}  // namespace phonebit::engine::memory
