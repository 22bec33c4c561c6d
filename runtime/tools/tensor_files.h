// Tensors as raw files: the numbers of a batch as they lie in memory, little-endian, one image after the
// other. Every machine that PhoneBit runs on is little-endian, so these are the engine's own buffers.
#pragma once

#include <string>
#include <vector>

#include "engine.h"

namespace phonebit::tools {

/// A tensor and a file: "scores=out.bin".
struct NamedFile {
  size_t tensor;  ///< index in the list that it was looked up in
  std::string path;
};

/// Reads "name=path", or "path" alone where there is one tensor. `option` is named in errors. Throws Failure
/// for unknown tensors.
NamedFile parse_named_file(const char* option, const std::string& text,
                           const std::vector<TensorInfo>& tensors);

/// "scores f32 1x1x10".
std::string describe(const TensorInfo& tensor);

/// How many images of a tensor a file of this size holds. Throws Failure where it is no whole number.
int images_in(const std::string& path, size_t size, const TensorInfo& tensor);

/// Where a batch of a tensor first differs from what was expected, in words; "" where every bit is equal.
std::string first_difference(const TensorInfo& tensor, const Bytes& got, const Bytes& expected);

}  // namespace phonebit::tools
