// What Network::load decides and describes before the first run.
#pragma once

#include <memory>

#include "backend.h"
#include "kernel_types.h"
#include "loader/model.h"
#include "network.h"

namespace phonebit {

/// The instruction set called `name`, or, when that is empty, PHONEBIT_CPU's or the best. Throws
/// Error(device) listing those that exist.
const cpu::Isa& choose_isa(const std::string& name);

/// Number of threads for Options::threads. Throws Error(input) when out of range.
int choose_threads(int threads);

/// The CPU or the OpenCL device that the options ask for, prepared for the model, which must stay where it
/// is.
std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options);

TensorInfo describe_tensor(const loader::Tensor& tensor);

Preprocessing describe_preprocessing(const format::PreprocessingRecord& record);

DetectionHead describe_detection(const format::DetectionRecord& record);

/// Everything but the kernel's name.
LayerInfo describe_layer(const loader::Model& model, const loader::Op& op);

}  // namespace phonebit
