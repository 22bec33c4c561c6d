#include "options.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

/// An enumeration by its names, in order.
template <class Enum, size_t count>
Enum named_value(const char* what, const py::object& value, const char* const (&names)[count]) {
  const auto name = value.cast<std::string>();
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
    all += (i > 0 ? ", '" : "'") + std::string(names[i]) + "'";
  }
  fail(ErrorCode::input, "%s: got '%s', expected one of %s", what, name.c_str(), all.c_str());
}
constexpr const char* kPrecisions[] = {"exact", "f16", "fast"};
constexpr const char* kSharings[] = {"auto", "copy", "map", "svm"};
constexpr const char* kCores[] = {"any", "big", "little"};
constexpr const char* kHints[] = {"none", "performance", "power"};
constexpr const char* kSynchronizations[] = {"auto", "events", "user_events", "polling"};

ExecutionPlan plan_of(const PlanTuple& tuple) {
  ExecutionPlan plan{std::get<0>(tuple), std::get<1>(tuple), std::get<2>(tuple), {}};
  for (const std::array<int, 7>& part : std::get<3>(tuple))
    plan.parts.push_back({part[0],
                          part[1] == 0 ? Processor::cpu : Processor::gpu,
                          part[2],
                          {part[3], part[4], part[5], part[6]}});
  return plan;
}

void set_cores(Options& options, const py::object& cores) {
  if (py::isinstance<py::str>(cores))
    options.cores = named_value<Cores>("cores", cores, kCores);
  else
    options.core_list = cores.cast<std::vector<int>>();
}

template <auto Options::* field>
void set_plain(Options& options, const py::object& value) {
  options.*field = value.cast<std::decay_t<decltype(options.*field)>>();
}

struct Keyword {
  const char* name;
  void (*set)(Options& options, const py::object& value);
};

constexpr Keyword kKeywords[] = {
#define PHONEBIT_PLAIN(setter, field) {#field, &set_plain<&Options::field>},
    PHONEBIT_PLAIN_OPTIONS(PHONEBIT_PLAIN, PHONEBIT_PLAIN, PHONEBIT_PLAIN)
#undef PHONEBIT_PLAIN
        {"sync_limit_ms", &set_plain<&Options::sync_limit_ms>},
    {"max_work", &set_plain<&Options::max_work>},
    {"device",
     [](Options& options, const py::object& device) {
       if (py::isinstance<GpuHandles>(device))
         options.handles = device.cast<GpuHandles>();
       else
         options.device = device.cast<std::string>();
     }},
    {"precision",
     [](Options& options, const py::object& name) {
       options.precision = named_value<Precision>("precision", name, kPrecisions);
     }},
    {"plan",
     [](Options& options, const py::object& plan) {
       if (!plan.is_none()) options.plan = plan_of(plan.cast<PlanTuple>());
     }},
    {"sharing",
     [](Options& options, const py::object& name) {
       options.sharing = named_value<Sharing>("sharing", name, kSharings);
     }},
    {"synchronization",
     [](Options& options, const py::object& name) {
       options.synchronization = named_value<Synchronization>("synchronization", name, kSynchronizations);
     }},
    {"cores", &set_cores},
    {"hint", [](Options& options,
                const py::object& name) { options.hint = named_value<Hint>("hint", name, kHints); }},
};

void set_option(Options& options, const std::string& name, const py::object& value) {
  for (const Keyword& keyword : kKeywords) {
    if (name != keyword.name) continue;
    try {
      return keyword.set(options, value);
    } catch (const py::cast_error&) {
      throw py::type_error(name + ": got " + py::repr(value).cast<std::string>());
    }
  }
  throw py::type_error("unknown option '" + name + "'");
}

}  // namespace

Options options_of(const py::dict& keywords) {
  Options options;
  for (const auto& [name, value] : keywords)
    set_option(options, name.cast<std::string>(), py::reinterpret_borrow<py::object>(value));
  return options;
}

PlanTuple tuple_of(const ExecutionPlan& plan) {
  std::vector<std::array<int, 7>> parts;
  for (const PlannedPart& planned : plan.parts)
    parts.push_back({planned.stage, static_cast<int>(planned.processor), planned.layer,
                     planned.part.row_begin, planned.part.row_end, planned.part.channel_begin,
                     planned.part.channel_end});
  return {plan.device, plan.method, plan.predicted_ms, std::move(parts)};
}

const char* name_of(Sharing sharing) { return kSharings[static_cast<int>(sharing)]; }

const char* name_of(Synchronization synchronization) {
  return kSynchronizations[static_cast<int>(synchronization)];
}

}  // namespace phonebit::engine::python
