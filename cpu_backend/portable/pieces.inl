// Long work in pieces, between which a kernel asks whether to end.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

/// Operations on one value: a millisecond of a vector unit, ten of scalar code.
constexpr int64_t kPiece = 1 << 22;

/// Asks after each piece, not more often: asking costs as much as some hundred operations.
class Pieces {
 public:
  explicit Pieces(const Stop& stop) : stop_(stop) {}
  bool is_end_after(int64_t operations) {
    left_ -= operations;
    if (left_ > 0) return false;
    left_ = kPiece;
    return stop_();
  }

 private:
  const Stop& stop_;
  int64_t left_ = kPiece;
};
