// The engine's own tests and measurements: kernels against the CPU, layers on two processors.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "descriptions.h"
#include "engine/devices.h"
#include "handles.h"
#include "status.h"

using namespace phonebit::engine;
using namespace phonebit::engine::c_api;

namespace {

std::optional<OutputPart> part_or_none(const phonebit_part* part) {
  if (part == nullptr) return std::nullopt;
  return part_of(*part);
}

phonebit_planned_part described(const PlannedPart& planned) {
  const OutputPart& part = planned.part;
  return {planned.stage,
          static_cast<phonebit_processor>(planned.processor),
          planned.layer,
          {part.row_begin, part.row_end, part.channel_begin, part.channel_end}};
}

phonebit_dispatch described(const DispatchInfo& info) {
  phonebit_dispatch result{};
  result.kernel = info.kernel.c_str();
  result.choice = info.choice.c_str();
  std::copy(std::begin(info.global), std::end(info.global), result.global);
  std::copy(std::begin(info.local), std::end(info.local), result.local);
  return result;
}

size_t checked_layer(const Network& network, int32_t layer) {
  return checked_index(layer, network.layers().size(), "layers");
}

}  // namespace

phonebit_status phonebit_self_test(const phonebit_options* options, int32_t is_again, phonebit_tested tested,
                                   void* user) {
  return guarded([&] {
    Options own = options_of(options);
    if (options == nullptr) own.device = "gpu";
    for (const SelfTestResult& result : gpu_self_test(own, is_again != 0)) {
      if (tested != nullptr)
        tested(user, result.op.c_str(), result.choice.c_str(), result.passed ? 1 : 0, result.detail.c_str());
    }
  });
}

phonebit_status phonebit_network_plan(const phonebit_network* network, phonebit_planned_part* parts,
                                      int32_t capacity, int32_t* count) {
  return guarded([&] {
    const ExecutionPlan plan = given(network, "network").network.plan();
    const size_t room = checked_count(parts, capacity, "parts");
    int32_t& result = given(count, "count");
    for (size_t i = 0; i < std::min(room, plan.parts.size()); ++i) parts[i] = described(plan.parts[i]);
    result = static_cast<int32_t>(plan.parts.size());
  });
}

phonebit_status phonebit_network_coexec(const phonebit_network* network, phonebit_coexec_info* info) {
  return guarded([&] {
    const CoexecInfo coexec = given(network, "network").network.coexec();
    give(given(info, "info"),
         {0, static_cast<phonebit_sharing>(coexec.sharing),
          static_cast<phonebit_synchronization>(coexec.synchronization), coexec.is_on_cpu_alone,
          coexec.is_on_gpu_alone, coexec.is_on_trial, coexec.plan_ms, coexec.cpu_ms, coexec.gpu_ms},
         "phonebit_coexec_info");
  });
}

phonebit_status phonebit_network_measure_layer(phonebit_network* network, int32_t layer,
                                               const phonebit_part* cpu, const phonebit_part* gpu,
                                               int32_t repeats, phonebit_layer_times* times) {
  return guarded([&] {
    Network& own = given(network, "network").network;
    phonebit_layer_times& result = given(times, "times");
    const LayerTimes measured =
        own.measure_layer(checked_layer(own, layer), part_or_none(cpu), part_or_none(gpu), repeats);
    give(result, {0, measured.total, measured.cpu, measured.gpu}, "phonebit_layer_times");
  });
}

phonebit_status phonebit_network_dispatch(phonebit_network* network, int32_t layer, const phonebit_part* gpu,
                                          phonebit_dispatch* dispatches, int32_t capacity, int32_t* count) {
  return guarded([&] {
    phonebit_network& handle = given(network, "network");
    const OutputPart part = part_of(given(gpu, "gpu"));
    const size_t room = checked_count(dispatches, capacity, "dispatches");
    int32_t& result = given(count, "count");
    const uint32_t struct_size = room > 0 ? dispatches->struct_size : sizeof(phonebit_dispatch);
    const size_t known = shared_bytes(struct_size, sizeof(phonebit_dispatch), "phonebit_dispatch");
    handle.dispatches = handle.network.dispatch(checked_layer(handle.network, layer), part);
    // Elements lie as far apart as the caller's version of the structure is long.
    char* target = reinterpret_cast<char*>(dispatches);
    for (size_t i = 0; i < std::min(room, handle.dispatches.size()); ++i, target += struct_size) {
      phonebit_dispatch content = described(handle.dispatches[i]);
      content.struct_size = struct_size;
      std::memcpy(target, &content, known);
    }
    result = static_cast<int32_t>(handle.dispatches.size());
  });
}
