// Pictures as inputs of networks, for the tests that compare them with phonebit/images/preprocessing.py.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::python {

/// Defines prepare_picture.
void define_pictures(pybind11::module_& module);

}  // namespace phonebit::python
