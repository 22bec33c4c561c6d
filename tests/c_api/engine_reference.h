// The engine itself, for comparison: its header cannot be included together with phonebit.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reference {

using Bytes = std::vector<uint8_t>;

/// Paths of the .pbit files in a folder.
std::vector<std::string> files_in(const std::string& folder);

/// Random images for each input of a file.
std::vector<Bytes> inputs_of(const std::string& path, int batch);

/// What the engine makes of them on a device.
std::vector<Bytes> outputs_of(const std::string& path, const std::string& device,
                              const std::vector<Bytes>& inputs, int batch);

}  // namespace reference
