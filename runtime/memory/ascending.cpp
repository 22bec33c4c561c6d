#include "memory/ascending.h"

#include <set>
#include <utility>

namespace phonebit::engine::memory {

std::vector<size_t> ascending(const std::vector<uint64_t>& keys) {
  std::set<std::pair<uint64_t, size_t>> sorted;  // smaller code than std::sort's
  for (size_t i = 0; i < keys.size(); ++i) sorted.emplace(keys[i], i);
  std::vector<size_t> indices;
  indices.reserve(keys.size());
  for (const auto& [key, index] : sorted) indices.push_back(index);
  return indices;
}

}  // namespace phonebit::engine::memory
