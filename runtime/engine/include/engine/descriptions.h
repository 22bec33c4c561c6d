// Tensors and layers of a model as a network tells of them.
#pragma once

#include "loader/model.h"
#include "types/layer.h"
#include "types/tensor.h"

namespace phonebit::engine {

TensorInfo describe_tensor(const loader::Tensor& tensor);

/// Everything but the kernel's name.
LayerInfo describe_layer(const loader::Model& model, const loader::Op& op);

}  // namespace phonebit::engine
