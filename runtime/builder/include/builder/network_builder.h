// A network put together layer by layer, without a converter: each call checks what it is given and becomes
// one op of a .pbit file in memory, which the loader then reads like any other.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "builder/channel_chain.h"
#include "builder/filters.h"
#include "builder/layer_arguments.h"
#include "builder/pbit_writer.h"
#include "builder/thresholds.h"
#include "builder/window_shape.h"
#include "ops/operators.h"
#include "ops/steps.h"
#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine::builder {

/// An op without outputs and constants; ops that have no window take Window{}.
format::OpRecord op_of(format::OpKind kind, const Window& window);

/// Layers take and give tensors by their numbers, which count from 1. Copies what it is given. One thread at
/// a time. Every failure is an Error(input) that names the layer, and leaves the builder as it was.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(const std::string& name);

  int input(const std::string& name, ElementType dtype, int height, int width, int channels);
  int convolution(int input, const Convolution& layer);
  /// A convolution whose window is the whole map; its window and groups are not looked at.
  int dense(int input, Convolution layer);
  /// Windows whose kernel_height and kernel_width are 0 are the whole map.
  int max_pool(int input, Pool layer);
  int average_pool(int input, Pool layer);
  /// An epilogue alone: any tensor's values scaled, normalised, added, activated, or their signs.
  int pointwise(int input, const std::string& name, const Epilogue& epilogue);
  int softmax(int input, const std::string& name);

  /// Makes a tensor the network's next output.
  void output(int tensor);
  /// Class names, in place of those before.
  void labels(const std::vector<std::string>& names);
  /// What images become before they are input number `rule.input`, in place of a rule before.
  void preprocessing(const Preprocessing& rule);

  const TensorInfo& tensor(int number) const;
  size_t inputs() const { return writer_.inputs.size(); }

  /// The network's file, complete and checked as every file is. Throws Error(input) without an output.
  memory::AlignedBuffer file() const;

 private:
  /// What an epilogue becomes: steps and threshold of an op.
  struct Finish {
    std::vector<format::StepRecord> steps;
    Thresholds<int32_t> integers;
    std::vector<float> threshold;  ///< empty: 0
    format::ThresholdKind kind = format::ThresholdKind::kNone;
  };
  /// A convolution's shape, checked.
  struct ConvShape {
    FilterShape filters;
    MapSize size;
    bool is_depthwise;
  };

  std::string layer_name(const std::string& given, const char* kind) const;
  ConvShape conv_shape(const TensorInfo& in, const Convolution& layer, const std::string& where) const;
  void set_conv_weights(format::OpRecord& op, const Convolution& layer, const ConvShape& shape,
                        const std::vector<bool>& negated);
  int pool(int input, Pool& layer, format::OpKind kind, const char* kind_name);
  /// `reach`: of the integer accumulator, or null.
  Finish finish(const Epilogue& epilogue, const TensorInfo& out, const Reach* reach,
                const std::string& where);
  void add_scale_bias(std::vector<format::StepRecord>& steps, const ScaleBias& step);
  void add_activation(std::vector<format::StepRecord>& steps, Activation activation,
                      const std::vector<float>& slopes);
  void check_added(const Epilogue& epilogue, const TensorInfo& out, const std::string& where) const;
  /// Whether there is room for a further tensor. Before anything is added, so that a failed call adds
  /// nothing.
  void check_tensor(const TensorInfo& info) const;
  int add_tensor(const TensorInfo& info);
  int add_op(format::OpRecord& op, int input, const TensorInfo& out, const Finish& finish);

  PbitWriter writer_;
  std::vector<TensorInfo> tensors_;
  std::set<std::string> names_;
};

}  // namespace phonebit::engine::builder
