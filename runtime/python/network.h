// The class Network for NumPy arrays.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

void define_network(pybind11::module_& module);

}  // namespace phonebit::engine::python
