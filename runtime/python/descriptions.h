// What a network tells of itself, as dicts.
#pragma once

#include <pybind11/pybind11.h>

#include "engine/network.h"

namespace phonebit::engine::python {

/// The records with the names and numbers of the file's.
pybind11::list preprocessing(const Network& network);
/// The same for detection heads; "anchors" has pairs.
pybind11::list detection(const Network& network);
pybind11::dict coexec(const Network& network);
pybind11::dict startup(const Network& network);
pybind11::dict memory(const Network& network);

}  // namespace phonebit::engine::python
