// An op prepared for execution: weights packed, kernel chosen, work cut into parts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "analysis/memory_budget.h"
#include "cpu/packing_list.h"
#include "cpu/split.h"
#include "cpu/tensor_slots.h"
#include "kernel_types.h"
#include "loader/model.h"
#include "types/cancellation.h"
#include "types/options.h"
#include "types/plan.h"

namespace phonebit::engine::cpu {

/// What layers are made from. References stay valid for the life of the layers.
struct BuildContext {
  const loader::Model& model;
  const Isa& isa;
  int threads;
  TensorSlots& slots;
  analysis::MemoryBudget& budget;
  PackingList& packing;
  Precision precision = Precision::exact;
};

class EpilogueBinding;
class PreparedConv;

/// A layer runs in phases; the parts of one phase are independent, and a phase begins when the one before it
/// has ended. run() reads and writes only tensors that were bound at construction and the scratch memory: no
/// allocation, no exception. It takes some milliseconds, or asks `stop` that often.
class Layer {
 public:
  Layer() = default;
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Name of the kernel that does the work, for reports.
  const std::string& kernel() const { return kernel_; }
  /// Bytes of weights in the kernels' own layout.
  virtual size_t packed_bytes() const { return 0; }
  /// Bytes of memory needed while the layer runs, shared by all layers.
  virtual size_t scratch_bytes() const { return 0; }
  /// Called once before the first run with 64-byte aligned memory of that size.
  virtual void set_scratch(std::byte* /*scratch*/) {}
  /// The epilogue of a layer that can write planes in place of levels; else null.
  EpilogueBinding* levels() const { return levels_; }
  /// The convolution of an ungrouped convolution's layer; else null.
  const PreparedConv* convolution() const { return convolution_; }
  virtual int phases() const { return 1; }
  virtual int parts(int phase) const = 0;
  virtual void run(int phase, int part, const Stop& stop) = 0;

 protected:
  std::string kernel_;
  EpilogueBinding* levels_ = nullptr;
  const PreparedConv* convolution_ = nullptr;
};

/// Prepares op `index`. Throws Error when memory is short.
std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index);
/// Prepares a part of op `index`: it reads what it needs (analysis::part_read), packs its own filters only and
/// writes nothing outside of the part. Rows: any, where analysis::can_split_rows. Channels: whole words, where
/// analysis::can_split_channels.
std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index, const OutputPart& part);

/// Prepares ops `index` - 1 and `index`, a pair of planes (analysis/plane_pairs.h), as one, which reads the weights
/// that the layers of the two have packed. Null where their kernel has no such form.
std::unique_ptr<Layer> make_plane_pair(const BuildContext& context, size_t index, const Layer& low,
                                       const Layer& high);

/// Runs all phases of a layer. Allocates nothing; returns when the layer is done, or soon after a
/// cancellation, whereupon its output is undefined.
void run_layer(Layer& layer, threads::ThreadPool& pool, const Cancellation& cancellation);

using MakeLayer = std::unique_ptr<Layer> (*)(const BuildContext& context, const loader::Op& op,
                                             const OutputPart& part);

/// The layers of one operator, defined in their source file: an operator that has none does not link.
template <format::OpKind kind>
struct LayersOf {
  static const MakeLayer make;
};
#define PHONEBIT_DECLARE(number, kind, ...) \
  template <>                               \
  const MakeLayer LayersOf<format::OpKind::kind>::make;
PHONEBIT_OPERATORS(PHONEBIT_DECLARE)
#undef PHONEBIT_DECLARE
/// Names what makes the layers of an operator.
#define PHONEBIT_LAYERS(kind, maker) \
  template <>                        \
  const MakeLayer LayersOf<format::OpKind::kind>::make = maker;

/// MakeLayer of an operator that has one class of layers.
template <class OneLayer>
std::unique_ptr<Layer> make_one(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
  return std::make_unique<OneLayer>(context, op, part);
}

// Families of convolutions, one source file each.
std::unique_ptr<Layer> make_ungrouped_conv_layer(const BuildContext& context, const loader::Op& op,
                                                 const OutputPart& part);
/// Null where the op does not run in 8-bit integers.
std::unique_ptr<Layer> make_i8_conv_layer(const BuildContext& context, const loader::Op& op,
                                          const OutputPart& part);
std::unique_ptr<Layer> make_grouped_conv_layer(const BuildContext& context, const loader::Op& op,
                                               const OutputPart& part);
std::unique_ptr<Layer> make_float_depthwise_layer(const BuildContext& context, const loader::Op& op,
                                                  const OutputPart& part);

}  // namespace phonebit::engine::cpu
