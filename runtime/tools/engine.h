// What both programs ask of the engine.
#pragma once

#include <phonebit/phonebit.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"
#include "failure.h"
#include "files.h"
#include "json.h"

namespace phonebit::tools {

/// What the engine could not do.
struct EngineFailure : Failure {
  explicit EngineFailure(const Error& error) : Failure(error.text), status(error.status) {}
  Status status;
};

/// The value of a result. Throws EngineFailure where there is none.
template <class T>
T checked(Result<T> result) {
  if (!result) throw EngineFailure(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// The rules of a program: those by which a user says how a network runs, and after them its own.
std::vector<OptionRule> with_engine_rules(const std::vector<OptionRule>& own);

/// The engine's options as the arguments say. Throws Failure for values that cannot be.
Options engine_options(const Arguments& arguments);

/// What --precision takes, the default first.
extern const std::vector<std::string> precision_names;

/// Loads the one file of the arguments. Throws Failure if there is not one, or it cannot be loaded.
Network load_network(const Arguments& arguments, const Options& options);

/// Name of an element type: "bit", "u8", "f32".
const char* type_name(Type type);

/// Memory of one batch for each tensor.
std::vector<Bytes> tensor_memory(const std::vector<TensorInfo>& tensors, int batch);

/// Such memory as the engine takes it.
std::vector<Input> as_inputs(const std::vector<Bytes>& memory);
std::vector<Output> as_outputs(std::vector<Bytes>& memory);

/// Bytes of all levels, real numbers from -1 to 1; equal at each call.
std::vector<Bytes> random_inputs(const std::vector<TensorInfo>& tensors, int batch);

/// Prints what the engine warns of on standard error.
void print_warnings(const char* program, const Network& network);

}  // namespace phonebit::tools
