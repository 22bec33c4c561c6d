// The backends that can run a network on two processors.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "backend/backend.h"

namespace phonebit::engine::coexec {

/// Both processors as the plan says, or one of them alone.
enum class Candidate { plan = 0, cpu = 1, gpu = 2 };
constexpr size_t kCandidates = 3;
constexpr std::array<Candidate, kCandidates> kAllCandidates{Candidate::plan, Candidate::cpu, Candidate::gpu};

/// Of which those are there that run, and take memory.
class Candidates {
 public:
  using Make = std::function<std::unique_ptr<Backend>(Candidate candidate)>;

  /// There is none before make(). `make` may throw.
  Candidates(Candidate selected, Make make) : selected_(selected), make_(std::move(make)) {}

  /// Makes it unless it is there.
  void make(Candidate candidate) {
    if (find(candidate) == nullptr) backends_[index(candidate)] = make_(candidate);
  }
  /// One that is there runs the network from now on; the others' memory is freed.
  void select(Candidate candidate) {
    selected_ = candidate;
    for (const Candidate other : kAllCandidates)
      if (other != candidate) backends_[index(other)].reset();
  }
  Candidate selected() const { return selected_; }
  Backend& backend() const { return *find(selected_); }
  /// Null where it is not there.
  Backend* find(Candidate candidate) const { return backends_[index(candidate)].get(); }

  static size_t index(Candidate candidate) { return static_cast<size_t>(candidate); }

 private:
  Candidate selected_;
  Make make_;
  std::array<std::unique_ptr<Backend>, kCandidates> backends_;
};

}  // namespace phonebit::engine::coexec
