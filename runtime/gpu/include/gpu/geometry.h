// The work sizes of a kernel: the `@geometry` line of its file, evaluated.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/kernel_library.h"

namespace phonebit::engine::gpu {

/// Work-items in each dimension.
using Extent = std::array<size_t, 3>;

/// `global = (roundup(pixels, GROUP_SIZE), ceil(channels / 8)), local = (GROUP_SIZE, 1)`: numbers, names of
/// defines, `pixels` and `channels` of the launch's part, + - * /, ceil(a), roundup(a, multiple), max(a, b),
/// min(a, b). One to three dimensions, as many in both lists.
class Geometry {
 public:
  /// From the `@geometry` line in a program's text. Throws Error(internal) where it is malformed, or names
  /// what `defines` does not have.
  static Geometry of_program(std::string_view kernel, std::string_view text, const Defines& defines);

  int dimensions() const { return static_cast<int>(global_.size()); }
  Extent global(int pixels, int channels) const;
  const Extent& local() const { return local_; }

 private:
  /// Reverse Polish: numbers pushed, `pixels` or `channels` pushed, operators applied.
  struct Instruction {
    char operation;  // 'n'umber, 'P'ixels, 'C'hannels, + - * / 'c'eil 'r'oundup 'M'ax 'm'in
    double number;
  };
  using Expression = std::vector<Instruction>;
  friend class GeometryParser;
  static size_t evaluate(const Expression& expression, int pixels, int channels);
  friend int channel_grain(const KernelChoice& choice);

  std::vector<Expression> global_;
  Extent local_{1, 1, 1};
};

/// Parts of the output's channels begin at multiples of this: the kernel's `@channels`. 0: it has none, and
/// computes all channels always.
int channel_grain(const KernelChoice& choice);

/// `CHANNEL_UNIT` of `@geometry`: where work-items share words of packed bits, a pixel has as many as fill them, or
/// one word's channels, up to a power of two (WORD_CHANNELS of common/channels.clh).
constexpr int channel_unit(bool shares_words, int channels) {
  return !shares_words ? 1 : channels > 16 ? 32 : channels > 8 ? 16 : channels > 4 ? 8 : 4;
}

}  // namespace phonebit::engine::gpu
