// Kernel files of a folder in place of the embedded ones.
#pragma once

#include <string>

#include "opencl/embedded_files.h"

namespace phonebit::engine::opencl {

/// Texts of all *.cl, *.clh and *.table below a folder by their paths in it: "binary/bgemv.cl". Throws
/// Error(input) where it is no folder or a file cannot be read.
KernelFiles read_kernel_folder(const std::string& folder);

}  // namespace phonebit::engine::opencl
