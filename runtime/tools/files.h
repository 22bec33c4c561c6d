// Whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace phonebit::tools {

using Bytes = std::vector<uint8_t>;

/// Everything in a file. Throws Failure if it cannot be read.
Bytes read_bytes(const std::string& path);
std::string read_text(const std::string& path);

/// Makes or replaces a file. Throws Failure if it cannot be written.
void write_bytes(const std::string& path, const void* data, size_t size);

/// The first line of a small file, as those under /sys; "" where it cannot be read.
std::string first_line(const std::string& path);

/// Whether something is at this path.
bool exists(const std::string& path);

/// Names in a folder, sorted by length and then by letters, so that cpu2 comes before cpu10; none where it
/// cannot be read.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace phonebit::tools
