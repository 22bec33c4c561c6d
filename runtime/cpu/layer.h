// An op prepared for execution: weights packed, kernel chosen, work cut into parts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cpu/packing_list.h"
#include "cpu/split.h"
#include "cpu/storage.h"
#include "kernel_types.h"
#include "loader/model.h"
#include "lowering/conv_shape.h"

namespace phonebit::cpu {

using lowering::conv_shape;
using lowering::integer_thresholds;

/// What layers are made from. References stay valid for the life of the layers.
struct BuildContext {
  const loader::Model& model;
  const Isa& isa;
  int threads;
  Storage& storage;
  lowering::MemoryBudget& budget;
  PackingList& packing;
};

/// A layer runs in phases; the parts of one phase are independent, and a phase begins when the one before it
/// has ended. run() reads and writes only tensors that were bound at construction and the scratch memory: no
/// allocation, no exception.
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
  virtual int phases() const { return 1; }
  virtual int parts(int phase) const = 0;
  virtual void run(int phase, int part) = 0;

 protected:
  std::string kernel_;
};

/// Prepares op `index`. Throws Error when memory is short.
std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index);

// The families of layers, one source file each; make_layer chooses.
std::unique_ptr<Layer> make_conv_layer(const BuildContext& context, const loader::Op& op);
std::unique_ptr<Layer> make_grouped_conv_layer(const BuildContext& context, const loader::Op& op);
std::unique_ptr<Layer> make_depthwise_layer(const BuildContext& context, const loader::Op& op);
std::unique_ptr<Layer> make_pool_layer(const BuildContext& context, const loader::Op& op);
std::unique_ptr<Layer> make_pixel_layer(const BuildContext& context, const loader::Op& op);
std::unique_ptr<Layer> make_copy_layer(const BuildContext& context, const loader::Op& op);

}  // namespace phonebit::cpu
