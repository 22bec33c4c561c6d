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

/// Keywords by the names of their fields; a device also as the caller's OpenCL objects, processors as a name or
/// a list of numbers. Throws TypeError for an unknown one, Error(input) listing an enumeration's names.
Options options_of(const pybind11::dict& keywords);

/// (device, method, predicted_ms, [(stage, processor, layer, row_begin, row_end, channel_begin,
/// channel_end)]).
using PlanTuple = std::tuple<std::string, std::string, double, std::vector<std::array<int, 7>>>;

PlanTuple tuple_of(const ExecutionPlan& plan);

const char* name_of(Sharing sharing);
const char* name_of(Synchronization synchronization);

}  // namespace phonebit::engine::python
