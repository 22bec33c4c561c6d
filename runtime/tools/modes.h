// What phonebit_bench can be asked for. Each gives the program's exit code, and throws Failure.
#pragma once

#include "arguments.h"

namespace phonebit::tools {

/// Times a network.
int bench(const Arguments& arguments);
/// --devices: the processors of this machine.
int list_devices(const Arguments& arguments);
/// --self-test: every kernel variant of a GPU against the CPU backend.
int self_test(const Arguments& arguments);
/// --collect FOLDER: carries out a measurement job.
int collect(const Arguments& arguments);

}  // namespace phonebit::tools
