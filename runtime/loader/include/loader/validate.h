// The steps of load_model after the sections are known; each throws Error(format) naming the record at fault.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "loader/model.h"
#include "loader/sections.h"

namespace phonebit::engine::loader {

/// Which checks of constants' content have passed already.
///
/// Thousands of ops may share one constant of megabytes; each content is read once for each thing that it is
/// checked for.
class ContentChecks {
 public:
  enum class Kind { tails, halves, bytes, indices };

  /// Whether this check, with this parameter, is still to be made. It counts as passed from now on, since a
  /// check that fails ends the load.
  bool is_due(const Constant& constant, Kind kind, int64_t parameter = 0) {
    return passed_.insert({constant.data, constant.count, kind, parameter}).second;
  }

 private:
  std::set<std::tuple<const std::byte*, uint64_t, Kind, int64_t>> passed_;
};

/// Fills tensors, constants, inputs, outputs, metadata, detection and labels, each checked by itself.
void read_tables(const Sections& sections, Model& model);

/// The name at `offset`: "what index" calls its owner in errors. STRINGS ends with a zero byte (checked by
/// read_tables), so every name ends inside it.
std::string name_at(const Section& strings, uint32_t offset, const char* what, size_t index);

/// Fills preprocessing, checked against the inputs that it describes.
void read_preprocessing(const Sections& sections, Model& model);

/// Fills detection, checked against the outputs that it describes.
void read_detection(const Sections& sections, Model& model);

/// Fills ops: names, kinds and list ranges are checked, meaning is not.
void read_ops(const Sections& sections, Model& model);

/// Re-infers the outputs of one op and checks its attributes, constants and references.
void validate_op(const Model& model, size_t op_index, ContentChecks& checks);

/// The part of validate_op that concerns steps, threshold and outputs.
/// `where` names the op; the output's shape was checked already.
void validate_epilogue(const Model& model, const Op& op, const std::string& where);

/// Fills plans: numbers are checked against the ops, which were validated. Whether a plan can be executed is
/// analysis::check_plan's to say, when it is used.
void read_plans(const Sections& sections, Model& model);

/// Every tensor is written exactly once, and before it is read.
void validate_order(const Model& model);

/// "op 3 'conv1' (binary_conv2d)".
std::string describe_op(const Model& model, size_t op_index);

/// The constant at `index`, which must have this type and count; `what` names its role.
const Constant& require_constant(const Model& model, int32_t index, format::DataType dtype, int64_t count,
                                 const std::string& where, const char* what);

}  // namespace phonebit::engine::loader
