// Expands what the build compressed: DEFLATE (RFC 1951).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace phonebit::engine::format {

/// The `size` bytes that a raw DEFLATE stream (without the header of zlib or gzip) stands for. Throws
/// Error(internal) where the stream is broken, ends early, has bytes after its last block, or stands for
/// fewer or more bytes; it reads and writes nothing out of bounds. Allocates the result.
std::string inflate(const uint8_t* stream, size_t stream_size, size_t size);

}  // namespace phonebit::engine::format
