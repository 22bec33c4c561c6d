// Records of a file as a network tells of them.
#pragma once

#include "loader/model.h"
#include "types/detection.h"
#include "types/layer.h"
#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit {

TensorInfo describe_tensor(const loader::Tensor& tensor);

Preprocessing describe_preprocessing(const format::PreprocessingRecord& record);

DetectionHead describe_detection(const format::DetectionRecord& record);

/// Everything but the kernel's name.
LayerInfo describe_layer(const loader::Model& model, const loader::Op& op);

}  // namespace phonebit
