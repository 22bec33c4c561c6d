// The sections EXECUTION_PLANS and PLAN_PARTS: who computes what on a device with a CPU and a GPU.
#include <cinttypes>
#include <cmath>
#include <set>
#include <string>

#include "loader/loader.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::PlanPartRecord;
using format::PlanRecord;

constexpr uint32_t kProcessors = 2;

void check_range(const std::string& where, const char* side, uint32_t begin, uint32_t end, int limit) {
  if (begin >= end || end > static_cast<uint32_t>(limit))
    fail_damaged("%s: %s %" PRIu32 ":%" PRIu32 " of an output of %d", where.c_str(), side, begin, end, limit);
}

PlannedPart read_part(const Model& model, const PlanPartRecord& record, uint32_t part_count,
                      const std::string& where) {
  if (record.stage >= part_count)
    fail_damaged("%s: stage %" PRIu32 " of a plan of %" PRIu32 " parts", where.c_str(), record.stage,
                 part_count);
  if (record.processor >= kProcessors)
    fail(ErrorCode::format,
         "%s: unknown processor %" PRIu32
         ", this engine knows 0 (cpu) and 1 (gpu); update PhoneBit or plan the network again",
         where.c_str(), record.processor);
  if (record.layer >= model.ops.size())
    fail_damaged("%s: layer %" PRIu32 " does not exist, there are %zu", where.c_str(), record.layer,
                 model.ops.size());
  const Tensor& output = model.output(model.ops[record.layer]);
  check_range(where, "rows", record.row_begin, record.row_end, output.height);
  check_range(where, "channels", record.channel_begin, record.channel_end, output.channels);
  return {static_cast<int>(record.stage),
          static_cast<Processor>(record.processor),
          static_cast<int>(record.layer),
          {static_cast<int>(record.row_begin), static_cast<int>(record.row_end),
           static_cast<int>(record.channel_begin), static_cast<int>(record.channel_end)}};
}

}  // namespace

void read_plans(const Sections& sections, Model& model) {
  if (sections.plans.count > Limits::kPlans || sections.plan_parts.count > Limits::kPlanParts)
    fail(ErrorCode::format,
         "section EXECUTION_PLANS: %" PRIu64 " plans of %" PRIu64
         " parts, this engine takes at most %zu and %zu",
         sections.plans.count, sections.plan_parts.count, Limits::kPlans, Limits::kPlanParts);
  const auto parts = sections.plan_parts.records<PlanPartRecord>();
  std::set<std::string> devices;
  size_t next = 0;
  for (const PlanRecord& record : sections.plans.records<PlanRecord>()) {
    const std::string where = format_text("plan %zu", model.plans.size());
    // Each part belongs to one plan, so the plans cannot be larger than the file.
    if (record.part_begin != next || record.part_count > parts.size() - next)
      fail_damaged("%s: %" PRIu32 " parts from %" PRIu32 ", expected from %zu and up to %zu in all",
                   where.c_str(), record.part_count, record.part_begin, next, parts.size());
    ExecutionPlan plan;
    plan.device = name_at(sections.strings, record.device_offset, "device of plan", model.plans.size());
    plan.method = name_at(sections.strings, record.method_offset, "method of plan", model.plans.size());
    plan.predicted_ms = record.predicted_ms;
    if (plan.device.empty() || plan.method.empty())
      fail_damaged("%s: its device or its method has no name", where.c_str());
    if (!devices.insert(plan.device).second)
      fail_damaged("%s: an earlier plan is for device '%s', too", where.c_str(), plan.device.c_str());
    if (!std::isfinite(plan.predicted_ms) || plan.predicted_ms < 0.0)
      fail_damaged("%s: predicted_ms is %g, expected 0 or more", where.c_str(), plan.predicted_ms);
    plan.parts.reserve(record.part_count);
    for (uint32_t i = 0; i < record.part_count; ++i)
      plan.parts.push_back(read_part(model, parts[next + i], record.part_count,
                                     format_text("%s, part %" PRIu32, where.c_str(), i)));
    next += record.part_count;
    model.plans.push_back(std::move(plan));
  }
  if (next != parts.size())
    fail_damaged("section PLAN_PARTS: %zu parts, but the plans have %zu", parts.size(), next);
}

}  // namespace phonebit::engine::loader
