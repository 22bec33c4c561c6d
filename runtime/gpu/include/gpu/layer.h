// An op prepared for a device: its kernels, their arguments, its weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "gpu/geometry.h"
#include "gpu/kernel_library.h"
#include "gpu/kernel_selection.h"
#include "gpu/program_cache.h"
#include "kernel_types.h"
#include "loader/model.h"

namespace phonebit::engine::gpu {

/// Where the tensors of a model are, as kernels get to see them: image after image, NHWC, packed bits in whole
/// words. Layers ask when they are bound.
class TensorMemory {
 public:
  /// Of a tensor that a layer on the device touches.
  virtual const DeviceMemory& memory(int tensor) const = 0;
  /// Whether a tensor of floats is stored as half.
  virtual bool is_half(int tensor) const = 0;
  /// Whether two tensors are the same memory.
  virtual bool is_shared(int a, int b) const = 0;

 protected:
  ~TensorMemory() = default;
};

/// What a kernel argument refers to. Tensors and scratch memory are bound anew whenever their place changes.
struct Argument {
  enum class Kind {
    tensor,         ///< `tensor` of the model
    memory,         ///< an object of the layer's own
    scratch,        ///< the memory that all layers share; at most one user in a layer
    image,          ///< the layer's image of its first operand
    first_channel,  ///< int: where the part begins
    end_channel,    ///< int: where it ends
  };
  Kind kind;
  int tensor = -1;
  const DeviceMemory* memory = nullptr;

  static Argument of_tensor(int index) { return {Kind::tensor, index, nullptr}; }
  static Argument of_memory(const DeviceMemory* object) { return {Kind::memory, -1, object}; }
  static Argument scratch() { return {Kind::scratch, -1, nullptr}; }
  static Argument image() { return {Kind::image, -1, nullptr}; }
  static Argument first_channel() { return {Kind::first_channel, -1, nullptr}; }
  static Argument end_channel() { return {Kind::end_channel, -1, nullptr}; }
};

/// One kernel over a part of the output. Its arguments 0 and 1 are the part's pixels, [first, end) over the
/// batch; `arguments` follow.
struct Launch {
  std::string name;
  std::string_view text;  ///< of its program, kept by the ProgramCache
  std::unique_ptr<Kernel> kernel;
  std::vector<Argument> arguments;
  Geometry geometry;
};

/// Runs as: copy of the operand into the image (where there is one), then the launches in order.
struct Layer {
  std::string kernel;                                 ///< for reports: choice with parameters
  std::vector<std::unique_ptr<DeviceMemory>> memory;  ///< weights and tables
  std::vector<Launch> launches;
  size_t weight_bytes = 0;
  size_t scratch_bytes = 0;  ///< of one image
  size_t image_width = 0;    ///< texels; 0: no image
  size_t image_height = 0;   ///< rows of one image of the batch
  int image_of = -1;         ///< the tensor that is copied into it
  int channel_grain = 0;     ///< parts may begin at its multiples; 0: made for all channels
};

/// What a layer is built from; references outlive the call only where Layer says so.
struct BuildContext {
  const loader::Model& model;
  Device& device;
  ProgramCache& programs;
  const TensorMemory& memory;
  /// Made for parts of the output's channels (bnn_kernels/README.md, "Parts of the output"): of kernels that
  /// have them.
  bool has_channel_parts;
};

/// How one kind of op is prepared.
struct OpKernels {
  const KernelFamily* family;
  /// Prepares the op with a choice that supports it. Throws Error(device).
  Layer (*build)(const BuildContext& build, const loader::Op& op, const KernelChoice& choice);
};
const OpKernels& op_kernels(const loader::Model& model, const loader::Op& op);

/// What decides about the op's kernels.
LayerFacts layer_facts(const loader::Model& model, const loader::Op& op);

/// Whether a choice supports the op: a kernel of its kind, and every @requires holds.
bool can_run(const loader::Model& model, const loader::Op& op, const Target& target,
             const KernelChoice& choice);

/// A layer that kernels are tested on: what the self-test makes a model of. Sizes that avoid multiples of tiles
/// reach every edge of a kernel; where windows are one run of the map (1x1, dense), K of floats should be below a
/// chunk, or several chunks and a rest.
struct TestShape {
  struct Map {
    uint8_t height, width;
    uint16_t channels;
  };
  struct Window {
    uint8_t kernel_h, kernel_w, stride, dilation, pad;
    float pad_value;
  };
  /// What comes out.
  enum Output : uint8_t {
    kThresholds,       ///< bits by integer thresholds
    kEpilogue,         ///< values and bits, after steps
    kRoundedEpilogue,  ///< the same, the first step rounds
    kCopies,           ///< of the kind that the operands are
    kValues,           ///< floats
    kPlanes,           ///< all bits outputs that an operator can have
  };
  static constexpr Window kNoWindow = {0, 0, 1, 1, 0, 0.0f};

  const char* op;  ///< KernelFamily::op
  format::DataType dtype;
  Map operand;
  Window window;
  uint8_t groups, out_channels;
  Output output;
  int reach = 0;           ///< of thresholds
  float tolerance = 0.0f;  ///< of float results
};

/// What an operator has for a device.
struct OperatorKernels {
  const OpKernels& (*choose)(const loader::Model& model, const loader::Op& op);
  /// On which its kernels are tested; each choice supports at least one of those of its OpKernels.
  std::initializer_list<TestShape> tests;
};

/// Defined in the operator's source file: an operator that has none does not link.
template <format::OpKind kind>
struct KernelsOf {
  static const OperatorKernels all;
};
#define PHONEBIT_DECLARE(number, kind, ...) \
  template <>                               \
  const OperatorKernels KernelsOf<format::OpKind::kind>::all;
PHONEBIT_OPERATORS(PHONEBIT_DECLARE)
#undef PHONEBIT_DECLARE

/// OperatorKernels::choose where there is one choice.
template <const KernelFamily& family, auto build>
const OpKernels& always(const loader::Model&, const loader::Op&) {
  static constexpr OpKernels kernels = {&family, build};
  return kernels;
}

}  // namespace phonebit::engine::gpu
