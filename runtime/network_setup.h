// What Network::load decides and describes before the first run.
#pragma once

#include <vector>

#include "kernel_types.h"
#include "loader/model.h"
#include "phonebit/network.h"

namespace phonebit {

/// The instruction set called `name`, or, when that is empty, PHONEBIT_CPU's or the best. Throws
/// Error(device) listing those that exist.
const cpu::Isa& choose_isa(const std::string& name);

/// Number of threads for Options::threads. Throws Error(input) when out of range.
int choose_threads(int threads);

TensorInfo describe_tensor(const loader::Tensor& tensor);

/// Everything but the kernel's name.
LayerInfo describe_layer(const loader::Model& model, const loader::Op& op);

/// Tensors that the op reads: operands, then those of its steps.
std::vector<int> tensors_read(const loader::Op& op);
/// Tensors that the op writes: values, then bits.
std::vector<int> tensors_written(const loader::Op& op);

}  // namespace phonebit
