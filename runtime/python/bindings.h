// What each file of the module defines.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

/// TensorInfo and LayerInfo.
void define_records(pybind11::module_& module);
/// OpenCL devices and the self-test of kernels.
void define_gpus(pybind11::module_& module);
/// The class Network for NumPy arrays.
void define_network(pybind11::module_& module);
/// prepare_image.
void define_images(pybind11::module_& module);
/// Energy sources for phonebit/energy: EnergySource, EnergyTrace, EnergySpan and discover_energy.
void define_energy(pybind11::module_& module);
/// Comparing times on a disturbed machine: NoiseProbe, time_runs and fixed_loop_ms.
void define_measure(pybind11::module_& module);
/// Kernel selection for phonebit/planner: isa_names, cpu_kernel, gpu_kernel_families and GpuKernels.
void define_selection(pybind11::module_& module);

}  // namespace phonebit::engine::python
