#include "memory/ascending.h"

#include <algorithm>
#include <utility>

namespace phonebit::memory {

std::vector<size_t> ascending(const std::vector<uint64_t>& keys) {
  std::vector<std::pair<uint64_t, size_t>> sorted;
  sorted.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) sorted.emplace_back(keys[i], i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<size_t> indices;
  indices.reserve(keys.size());
  for (const auto& [key, index] : sorted) indices.push_back(index);
  return indices;
}

}  // namespace phonebit::memory
