// The kinds of sources, a file each. Every function looks below a root of the file system and gives what it
// found, read once; it throws Error(device) that says why there is nothing, or why it cannot be read.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "energy/energy_source.h"

namespace phonebit::engine::energy {

SourceList find_rapl(const std::string& root);
SourceList find_ina(const std::string& root);
SourceList find_odpm(const std::string& root);
SourceList find_battery(const std::string& root);

/// The list that a kind of one source gives.
template <class Kind, class... Arguments>
SourceList list_of(Arguments&&... arguments) {
  SourceList sources;
  sources.push_back(std::make_unique<Kind>(std::forward<Arguments>(arguments)...));
  return sources;
}

}  // namespace phonebit::engine::energy
