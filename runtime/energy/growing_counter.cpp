#include "energy/growing_counter.h"

#include "types/fail.h"

namespace phonebit::engine::energy {

int64_t GrowingCounter::advance(int64_t raw) {
  if (raw < 0 || (modulus_ && raw >= *modulus_)) {
    const std::string range = modulus_ ? "0 to " + std::to_string(*modulus_ - 1) : "0 or more";
    fail(ErrorCode::device, "%s: counter out of its range (expected %s, got %lld)", where_.c_str(),
         range.c_str(), static_cast<long long>(raw));
  }
  if (last_) {
    int64_t difference = raw - *last_;
    if (difference < 0 && !modulus_)
      fail(ErrorCode::device,
           "%s: the counter went backwards (expected %lld or more, got %lld); measure again; if it happens "
           "again, the source is of no use",
           where_.c_str(), static_cast<long long>(*last_), static_cast<long long>(raw));
    if (difference < 0) difference += *modulus_;
    total_ += difference;
  }
  last_ = raw;
  return total_;
}

}  // namespace phonebit::engine::energy
