// The files of bnn_kernels/ as cmake/embed_kernels.cmake wrote them into a generated source.
#pragma once

#include <cstddef>
#include <string_view>

namespace phonebit::opencl {

struct EmbeddedFile {
  const char* path;  ///< in bnn_kernels: "binary/bgemv.cl", "tuning.table"
  const unsigned char* bytes;
  size_t size;

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes), size}; }
};

extern const EmbeddedFile embedded_files[];
extern const size_t embedded_file_count;

}  // namespace phonebit::opencl
