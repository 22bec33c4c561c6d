// What a network is loaded with. Numbers and names are checked when it is; enumerations here, before they
// become the engine's.
#include "arguments.h"
#include "descriptions.h"
#include "handles.h"
#include "status.h"

using namespace phonebit::engine::c_api;

namespace {

phonebit::engine::Options& of(phonebit_options* options) { return given(options, "options").options; }

phonebit::engine::PlannedPart planned_part(const phonebit_planned_part& part) {
  return {part.stage, enumerator(part.processor, phonebit::engine::Processor::gpu, "processor"), part.layer,
          part_of(part.part)};
}

}  // namespace

phonebit_status phonebit_options_create(phonebit_options** options) {
  return guarded([&] {
    phonebit_options*& result = given(options, "options");
    result = new phonebit_options;
  });
}

void phonebit_options_destroy(phonebit_options* options) { delete options; }

#define PHONEBIT_SWITCH(setter, field)                                                      \
  phonebit_status phonebit_options_set_##setter(phonebit_options* options, int32_t is_on) { \
    return guarded([&] { of(options).field = is_on != 0; });                                \
  }
#define PHONEBIT_NUMBER(setter, field)                                                               \
  phonebit_status phonebit_options_set_##setter(phonebit_options* options,                           \
                                                decltype(phonebit::engine::Options::field) number) { \
    return guarded([&] { of(options).field = number; });                                             \
  }
#define PHONEBIT_TEXT(setter, field)                                                           \
  phonebit_status phonebit_options_set_##setter(phonebit_options* options, const char* text) { \
    return guarded([&] { of(options).field = given_text(text, #field); });                     \
  }
PHONEBIT_PLAIN_OPTIONS(PHONEBIT_SWITCH, PHONEBIT_NUMBER, PHONEBIT_TEXT)
#define PHONEBIT_CHOICE(field, Enum, last)                                                                 \
  phonebit_status phonebit_options_set_##field(phonebit_options* options, int32_t number) {                \
    return guarded([&] { of(options).field = enumerator(number, phonebit::engine::Enum::last, #field); }); \
  }
PHONEBIT_CHOICE(cores, Cores, little)
PHONEBIT_CHOICE(hint, Hint, power)
PHONEBIT_CHOICE(precision, Precision, fast)
PHONEBIT_CHOICE(sharing, Sharing, shared)
PHONEBIT_CHOICE(synchronization, Synchronization, polling)
#undef PHONEBIT_CHOICE
#undef PHONEBIT_SWITCH
#undef PHONEBIT_NUMBER
#undef PHONEBIT_TEXT

phonebit_status phonebit_options_set_device(phonebit_options* options, const char* device) {
  return guarded([&] { of(options).device = given_text(device, "device"); });
}

phonebit_status phonebit_options_set_core_list(phonebit_options* options, const int32_t* cores,
                                               int32_t count) {
  return guarded([&] {
    const size_t checked = checked_count(cores, count, "cores");
    of(options).core_list.assign(cores, cores + checked);
  });
}

phonebit_status phonebit_options_set_plan(phonebit_options* options, const phonebit_planned_part* parts,
                                          int32_t count) {
  return guarded([&] {
    phonebit::engine::Options& target = of(options);
    phonebit::engine::ExecutionPlan plan;
    plan.method = "user";
    for (size_t i = 0; i < checked_count(parts, count, "parts"); ++i)
      plan.parts.push_back(planned_part(parts[i]));
    target.plan = std::move(plan);
  });
}

phonebit_status phonebit_options_set_max_work(phonebit_options* options, double operations) {
  return guarded([&] {
    if (!(operations >= 0.0))
      phonebit::engine::fail(phonebit::engine::ErrorCode::input, "operations: got %g, expected at least 0",
                             operations);
    of(options).max_work = operations;
  });
}

phonebit_status phonebit_options_set_sync_limit(phonebit_options* options, int32_t limit_ms) {
  return guarded([&] {
    if (limit_ms < 0)
      phonebit::engine::fail(phonebit::engine::ErrorCode::input, "limit_ms: got %d, expected at least 0",
                             limit_ms);
    of(options).sync_limit_ms = limit_ms;
  });
}

phonebit_status phonebit_options_set_opencl(phonebit_options* options, void* context, void* device,
                                            void* queue) {
  return guarded([&] {
    phonebit::engine::Options& target = of(options);
    given(static_cast<char*>(context), "context");
    given(static_cast<char*>(device), "device");
    target.handles = {context, device, queue};
  });
}
