#include "coexec/setup.h"

#include <algorithm>

#include "analysis/op_part.h"
#include "analysis/plan_check.h"
#include "cpu/i8_arithmetic.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {
namespace {

ExecutionPlan everything_on_gpu(const loader::Model& model, const std::string& device) {
  ExecutionPlan plan{device, "user", 0.0, {}};
  for (size_t i = 0; i < model.ops.size(); ++i)
    plan.parts.push_back({static_cast<int>(i), Processor::gpu, static_cast<int>(i),
                          analysis::whole_part(model, model.ops[i])});
  return plan;
}

Sharing choose_sharing(const gpu::DeviceFacts& device, Sharing wanted) {
  if (wanted == Sharing::shared && !device.has_svm_fine)
    fail(ErrorCode::device,
         "sharing 'svm': %s has no fine-grained shared virtual memory; use 'map', 'copy' or 'auto'",
         device.name.c_str());
  if (wanted != Sharing::automatic) return wanted;
  if (device.has_svm_fine) return Sharing::shared;
  return device.has_unified_memory ? Sharing::mapped : Sharing::copied;
}

Synchronization choose_synchronization(const gpu::DeviceFacts& device, Synchronization wanted) {
  const bool can_poll = device.has_svm_fine && device.has_svm_atomics;
  if (wanted == Synchronization::polling && !can_poll)
    fail(
        ErrorCode::device,
        "synchronization 'polling': %s has no fine-grained shared virtual memory with atomics; use 'events', "
        "'user_events' or 'auto'",
        device.name.c_str());
  if (wanted == Synchronization::ahead && !device.has_host_events)
    fail(ErrorCode::device,
         "synchronization 'user_events': commands of %s cannot wait for the host; use 'events' or 'auto'",
         device.name.c_str());
  if (wanted != Synchronization::automatic) return wanted;
  // Where threads of a processor are the device, a kernel that polls wakes all of them for nothing.
  const bool is_pool = !device.is_gpu && device.compute_units > 1;
  return can_poll && !is_pool ? Synchronization::polling : Synchronization::in_turn;
}

}  // namespace

Setup::Setup(const loader::Model& model, const gpu::DeviceFacts& device, const std::string& plan_key,
             const Options& options)
    : is_compared(false),
      sharing(choose_sharing(device, options.sharing)),
      synchronization(choose_synchronization(device, options.synchronization)) {
  const auto own = std::find_if(model.plans.begin(), model.plans.end(),
                                [&](const ExecutionPlan& one) { return one.device == plan_key; });
  if (options.plan) {
    plan = options.plan->parts.empty() ? everything_on_gpu(model, plan_key) : *options.plan;
  } else if (own != model.plans.end()) {
    plan = *own;
    is_compared = options.trial && !options.profiling;
  } else {
    plan = everything_on_gpu(model, plan_key);
    warnings.push_back(
        format_text("the file has no plan for '%s', so the GPU does everything; "
                    "'phonebit plan' makes one",
                    plan_key.c_str()));
  }
  analysis::check_plan(model, plan);
  uses_gpu = std::any_of(plan.parts.begin(), plan.parts.end(),
                         [](const PlannedPart& part) { return part.processor == Processor::gpu; });
  if (const std::string text = cpu::kept_exact_text(model);
      options.precision == Precision::fast && !text.empty())
    warnings.push_back(text);
}

void Setup::add_warnings(const std::vector<std::string>& more) {
  for (const std::string& warning : more)
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
}

void Setup::wait_by_events(const std::string& label, const char* reason) {
  warnings.push_back(
      format_text("%s: %s; the processors wait for each other by events from now on", label.c_str(), reason));
  synchronization = Synchronization::in_turn;
}

}  // namespace phonebit::engine::coexec
