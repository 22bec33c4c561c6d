// What a network is loaded with. Numbers and names are checked when it is; enumerations here, before they
// become the engine's.
#include "arguments.h"
#include "handles.h"
#include "status.h"

using namespace phonebit::engine::c_api;

namespace {

phonebit::engine::Options& of(phonebit_options* options) { return given(options, "options").options; }

phonebit::engine::PlannedPart planned_part(const phonebit_planned_part& part) {
  return {part.stage,
          enumerator(part.processor, phonebit::engine::Processor::gpu, "processor"),
          part.layer,
          {part.part.row_begin, part.part.row_end, part.part.channel_begin, part.part.channel_end}};
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
#undef PHONEBIT_SWITCH
#undef PHONEBIT_NUMBER
#undef PHONEBIT_TEXT

phonebit_status phonebit_options_set_device(phonebit_options* options, const char* device) {
  return guarded([&] { of(options).device = given_text(device, "device"); });
}

phonebit_status phonebit_options_set_cores(phonebit_options* options, phonebit_cores cores) {
  return guarded([&] { of(options).cores = enumerator(cores, phonebit::engine::Cores::little, "cores"); });
}

phonebit_status phonebit_options_set_core_list(phonebit_options* options, const int32_t* cores,
                                               int32_t count) {
  return guarded([&] {
    const size_t checked = checked_count(cores, count, "cores");
    of(options).core_list.assign(cores, cores + checked);
  });
}

phonebit_status phonebit_options_set_hint(phonebit_options* options, phonebit_hint hint) {
  return guarded([&] { of(options).hint = enumerator(hint, phonebit::engine::Hint::power, "hint"); });
}

phonebit_status phonebit_options_set_precision(phonebit_options* options, phonebit_precision precision) {
  return guarded(
      [&] { of(options).precision = enumerator(precision, phonebit::engine::Precision::fast, "precision"); });
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

phonebit_status phonebit_options_set_sharing(phonebit_options* options, phonebit_sharing sharing) {
  return guarded(
      [&] { of(options).sharing = enumerator(sharing, phonebit::engine::Sharing::shared, "sharing"); });
}

phonebit_status phonebit_options_set_synchronization(phonebit_options* options,
                                                     phonebit_synchronization synchronization) {
  return guarded([&] {
    of(options).synchronization =
        enumerator(synchronization, phonebit::engine::Synchronization::polling, "synchronization");
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
