// What the families of layers are put together from: defines of geometry and sink, memory, launches.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/layer.h"

namespace phonebit::engine::gpu {

/// Libraries for phones leave out the kernels of tensor cores.
#ifdef PHONEBIT_FOR_PHONES
constexpr bool kHasTensorCores = false;
#else
constexpr bool kHasTensorCores = true;
#endif

/// Geometry of any op: maps and, for window ops, the window (bnn_kernels/README.md, "Defines of every
/// program").
Defines geometry_defines(const loader::Model& model, const loader::Op& op);

/// The sink of an op: defines, its constants, and its arguments, which come last in every kernel that has
/// one.
struct Sink {
  Defines defines;
  std::vector<float> constants;     ///< EPILOGUE
  std::vector<Argument> arguments;  ///< of memory: the constants
  bool is_threshold = false;
};
Sink make_sink(const BuildContext& build, const loader::Op& op);

/// The first operand, which most kernels read.
inline Argument input_of(const loader::Op& op) { return Argument::of_tensor(op.operands[0]); }

/// A float as a literal of kernels of the same value.
std::string float_literal(float value);

/// The border classes of a binary convolution's output rows, then columns; none where there is one class.
std::vector<uint16_t> border_numbers(const cpu::ConvShape& shape);

/// Builds one layer: keeps what its launches need.
class LayerBuilder {
 public:
  enum SinkUse { with_sink, without_sink };
  LayerBuilder(const BuildContext& build, const loader::Op& op, SinkUse use = with_sink);

  /// Defines of geometry and sink, to which kernels add theirs.
  Defines& defines() { return defines_; }
  const Sink& sink() const { return sink_; }
  const cpu::ConvShape& shape() const { return shape_; }

  /// Device memory of the layer's own.
  Argument upload(const void* data, size_t bytes, const char* what);
  template <class T>
  Argument upload(const std::vector<T>& values, const char* what) {
    return upload(values.data(), values.size() * sizeof(T), what);
  }
  Argument upload_image(const void* data, size_t width, size_t height);
  /// border_numbers(), or a dummy.
  Argument upload_borders(const cpu::ConvShape& shape);
  /// For arguments that a layer does not need.
  Argument dummy();
  /// The sink's arguments, appended to `arguments`.
  void append_sink(std::vector<Argument>& arguments);

  /// Adds a launch of `kernel` with the current defines and, where they are of this kernel, the choice's
  /// parameters.
  void launch(const std::string& kernel, std::vector<Argument> arguments, const KernelChoice& choice = {});
  /// A name that only the kernel's @geometry needs.
  void set_size(const char* name, int value) { sizes_.set(name, value); }
  void set_scratch(size_t bytes) { layer_.scratch_bytes = bytes; }
  void set_image(int tensor, size_t width, size_t height);

  /// The finished layer of a choice.
  Layer finish(const KernelChoice& choice);
  /// The same after the launch of the choice's kernel, whose last arguments are the sink's.
  Layer finish_with_sink(const KernelChoice& choice, std::vector<Argument> arguments);

 private:
  const BuildContext& build_;
  cpu::ConvShape shape_;
  Sink sink_;
  Defines defines_, sizes_;
  Layer layer_;
};

}  // namespace phonebit::engine::gpu
