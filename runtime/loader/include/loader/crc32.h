// CRC-32 as in zlib, gzip and PNG.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::loader {

/// Continues `crc` (0 at the start) over `size` bytes, as zlib's crc32() does.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace phonebit::engine::loader
