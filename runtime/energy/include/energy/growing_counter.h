// The total of a counter that wraps around.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace phonebit::engine::energy {

class GrowingCounter {
 public:
  /// `where` is for messages. The counter goes from modulus - 1 to 0; no modulus: it never wraps around.
  GrowingCounter(std::string where, std::optional<int64_t> modulus)
      : where_(std::move(where)), modulus_(modulus) {}

  /// Takes what the counter shows; gives what it has counted since the first call. It must be read more than
  /// once a turn: whole turns between two readings leave no trace. Throws Error(device) if it went backwards
  /// though it does not wrap, or shows more than it can.
  int64_t advance(int64_t raw);

 private:
  std::string where_;
  std::optional<int64_t> modulus_, last_;
  int64_t total_ = 0;
};

}  // namespace phonebit::engine::energy
