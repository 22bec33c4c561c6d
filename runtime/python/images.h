// Images as inputs of networks.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

/// Defines prepare_image.
void define_images(pybind11::module_& module);

}  // namespace phonebit::engine::python
