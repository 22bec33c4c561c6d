// Whether a plan can be executed.
#pragma once

#include "loader/model.h"
#include "types/plan.h"

namespace phonebit::engine::analysis {

/// Throws Error(input), which says what is wrong where, got and expected, unless the plan keeps all rules of
/// ExecutionPlan for this model and cuts layers only where op_part.h allows it. Code that executes a plan that
/// passed needs no further checks. Independent of who made the plan; trusts none of its numbers.
void check_plan(const loader::Model& model, const ExecutionPlan& plan);

}  // namespace phonebit::engine::analysis
