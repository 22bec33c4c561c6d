// The files of bnn_kernels/: as cmake/embed_kernels.cmake wrote them into a generated source, or of a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace phonebit::engine::gpu {

/// Texts by their paths in bnn_kernels: "binary/bgemv.cl", "tuning.table".
using KernelFiles = std::map<std::string, std::string, std::less<>>;

/// Expands all files. Throws Error(internal) where they are damaged.
KernelFiles embedded_files();

/// Texts of all *.cl, *.clh and *.table below a folder by their paths in it. Throws Error(input) where it is
/// no folder or a file cannot be read.
KernelFiles read_kernel_folder(const std::string& folder);

/// What the generated source defines: for each file a line "PATH BYTES" and its text, as one raw DEFLATE
/// stream.
extern const uint8_t embedded_stream[];
extern const size_t embedded_stream_size;
extern const size_t embedded_text_size;

}  // namespace phonebit::engine::gpu
