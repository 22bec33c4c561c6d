// How a network is loaded, as Python says it.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "types/options.h"

namespace phonebit::engine::python {

inline void* pointer(uintptr_t number) { return reinterpret_cast<void*>(number); }

/// A device's name, or the caller's OpenCL objects.
void set_device(Options& options, const pybind11::object& device);

Precision precision_of(const std::string& name);

/// (device, method, predicted_ms, [(stage, processor, layer, row_begin, row_end, channel_begin,
/// channel_end)]).
using PlanTuple = std::tuple<std::string, std::string, double, std::vector<std::array<int, 7>>>;

ExecutionPlan plan_of(const PlanTuple& tuple);
PlanTuple tuple_of(const ExecutionPlan& plan);

/// Enumerations by their names. Throw Error(input) listing those that exist.
Sharing sharing_of(const std::string& name);
Synchronization synchronization_of(const std::string& name);
Cores cores_of(const std::string& name);
Hint hint_of(const std::string& name);
const char* name_of(Sharing sharing);
const char* name_of(Synchronization synchronization);

}  // namespace phonebit::engine::python
