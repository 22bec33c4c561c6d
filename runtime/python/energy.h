// Energy sources for phonebit/energy.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

/// Defines EnergySource, EnergyTrace, EnergySpan and discover_energy.
void define_energy(pybind11::module_& module);

}  // namespace phonebit::engine::python
