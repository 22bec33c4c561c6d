// Which tensors share memory, which belong to the caller, and how long each lives.
#pragma once

#include <vector>

#include "kernel_types.h"
#include "loader/model.h"
#include "memory/arena_plan.h"

namespace phonebit::engine::analysis {

/// Kinds of memory that a tensor may live in.
enum class Place { arena, input, output };

/// Tensors that share memory have one root, the first of them.
struct TensorHome {
  int root;
  Place place = Place::arena;
  int index = 0;  // of the network input or output, or of the buffer in lifetimes()
};

/// Network inputs and outputs have memory of their own, RESHAPE shares its operand's, a residual sum that of
/// its dying shortcut; all else goes into one arena.
class TensorHomes {
 public:
  explicit TensorHomes(const loader::Model& model);

  int root(int tensor) const { return homes_[static_cast<size_t>(tensor)].root; }
  /// The home of the tensor's root: place and index.
  const TensorHome& home(int tensor) const { return homes_[static_cast<size_t>(root(tensor))]; }
  bool is_shared(int a, int b) const { return root(a) == root(b); }
  /// Buffers of the arena, with the bytes of one image, in steps of ops.
  const std::vector<memory::Lifetime>& lifetimes() const { return lifetimes_; }
  /// Whether op `index` is a BIT_PLANES that alone reads the only output of the op before it. That op may write
  /// the planes itself: they live while it runs.
  bool are_planes_of_the_op_before(const loader::Model& model, size_t index) const;
  /// Whether ops `index` - 1 and `index` may run as one (plane_pairs): the first one's input lives while the second
  /// runs.
  bool is_pair_of_planes(size_t index) const { return cpu::kHavePlanesKernels && pairs_[index]; }

 private:
  TensorHome& mutable_home(int tensor) { return homes_[static_cast<size_t>(root(tensor))]; }
  void share_reshaped(const loader::Op& op);
  void share_residual_sums(const loader::Model& model);
  void find_lifetimes(const loader::Model& model);

  std::vector<TensorHome> homes_;
  std::vector<memory::Lifetime> lifetimes_;
  std::vector<bool> pairs_;
};

}  // namespace phonebit::engine::analysis
