// Pictures as inputs of networks.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

/// Defines prepare_picture.
void define_pictures(pybind11::module_& module);

}  // namespace phonebit::engine::python
