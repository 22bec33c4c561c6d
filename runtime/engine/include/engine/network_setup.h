// What Network::load decides and describes before the first run.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "engine/network.h"
#include "kernel_types.h"
#include "loader/model.h"
#include "opencl/context.h"
#include "threads/processor_topology.h"

namespace phonebit {

/// The instruction set called `name`, or, when that is empty, PHONEBIT_CPU's or the best. Throws
/// Error(device) listing those that exist.
const cpu::Isa& choose_isa(const std::string& name);

/// The processors that Options::cores and core_list stand for; none: any. Throws Error(input), listing those
/// that the calling thread may use, when one of the list, or every one of the kind, is not among them.
std::vector<int> choose_cores(const Options& options);
/// The same among processors that are given.
std::vector<int> choose_cores(const Options& options, const std::vector<threads::Processor>& online,
                              const std::vector<int>& allowed);

/// Threads of the number, on the processors and of the patience that the options ask for; where they give no
/// number, one for each of those processors. Throws Error(input) when it is out of range, and as
/// choose_cores.
std::shared_ptr<threads::ThreadPool> make_pool(const Options& options);

/// The caller's context, or a new one on the OpenCL device `device` ("auto", "gpu", "gpu:1"); null where that
/// is the CPU (empty, or "auto" without a GPU). `label` becomes its name. Throws Error(input) and
/// Error(device).
std::shared_ptr<opencl::Context> make_context(const Options& options, const std::string& device,
                                              std::string* label);

/// The CPU, the OpenCL device, or both, that the options ask for, prepared for the model, which must stay
/// where it is.
std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options);

TensorInfo describe_tensor(const loader::Tensor& tensor);

Preprocessing describe_preprocessing(const format::PreprocessingRecord& record);

DetectionHead describe_detection(const format::DetectionRecord& record);

/// Everything but the kernel's name.
LayerInfo describe_layer(const loader::Model& model, const loader::Op& op);

}  // namespace phonebit
