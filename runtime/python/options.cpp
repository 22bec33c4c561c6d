#include "options.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

/// An enumeration by its names, in order.
template <class Enum, size_t count>
Enum named_value(const char* what, const std::string& name, const char* const (&names)[count]) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
    all += (i > 0 ? ", '" : "'") + std::string(names[i]) + "'";
  }
  fail(ErrorCode::input, "%s: got '%s', expected one of %s", what, name.c_str(), all.c_str());
}
constexpr const char* kSharings[] = {"auto", "copy", "map", "svm"};
constexpr const char* kCores[] = {"any", "big", "little"};
constexpr const char* kHints[] = {"none", "performance", "power"};
constexpr const char* kSynchronizations[] = {"auto", "events", "user_events", "polling"};

}  // namespace

void set_device(Options& options, const py::object& device) {
  if (py::isinstance<OpenClHandles>(device))
    options.opencl = device.cast<OpenClHandles>();
  else
    options.device = device.cast<std::string>();
}

Precision precision_of(const std::string& name) {
  if (name == "exact") return Precision::exact;
  if (name == "f16") return Precision::f16;
  if (name == "fast") return Precision::fast;
  fail(ErrorCode::input, "precision: got '%s', expected 'exact', 'f16' or 'fast'", name.c_str());
}

ExecutionPlan plan_of(const PlanTuple& tuple) {
  ExecutionPlan plan{std::get<0>(tuple), std::get<1>(tuple), std::get<2>(tuple), {}};
  for (const std::array<int, 7>& part : std::get<3>(tuple))
    plan.parts.push_back({part[0],
                          part[1] == 0 ? Processor::cpu : Processor::gpu,
                          part[2],
                          {part[3], part[4], part[5], part[6]}});
  return plan;
}

PlanTuple tuple_of(const ExecutionPlan& plan) {
  std::vector<std::array<int, 7>> parts;
  for (const PlannedPart& planned : plan.parts)
    parts.push_back({planned.stage, static_cast<int>(planned.processor), planned.layer,
                     planned.part.row_begin, planned.part.row_end, planned.part.channel_begin,
                     planned.part.channel_end});
  return {plan.device, plan.method, plan.predicted_ms, std::move(parts)};
}

Sharing sharing_of(const std::string& name) { return named_value<Sharing>("sharing", name, kSharings); }

Synchronization synchronization_of(const std::string& name) {
  return named_value<Synchronization>("synchronization", name, kSynchronizations);
}

Cores cores_of(const std::string& name) { return named_value<Cores>("cores", name, kCores); }

Hint hint_of(const std::string& name) { return named_value<Hint>("hint", name, kHints); }

const char* name_of(Sharing sharing) { return kSharings[static_cast<int>(sharing)]; }

const char* name_of(Synchronization synchronization) {
  return kSynchronizations[static_cast<int>(synchronization)];
}

}  // namespace phonebit::engine::python
