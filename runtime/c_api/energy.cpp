// Energy: sources of this machine, and a meter.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "energy/energy_meter.h"
#include "energy/energy_source.h"
#include "status.h"

using namespace phonebit::engine::c_api;
namespace energy = phonebit::engine::energy;

struct phonebit_energy_meter {
  energy::Meter meter;
  explicit phonebit_energy_meter(std::unique_ptr<energy::Source> source) : meter(std::move(source)) {}
};

namespace {

/// A source, or a kind of which there is none.
struct Listed {
  energy::SourceInfo info;
  bool is_available;
};

/// What this thread has found last.
std::vector<Listed>& list() {
  static thread_local std::vector<Listed> sources;
  return sources;
}

std::vector<Listed> find_sources() {
  std::vector<Listed> found;
  for (const energy::Finding& finding : energy::discover()) {
    for (const auto& source : finding.sources) found.push_back({source->info(), true});
    if (!finding.sources.empty()) continue;
    energy::SourceInfo absent;
    absent.name = finding.kind;
    absent.description = finding.absent;
    found.push_back({absent, false});
  }
  return found;
}

phonebit_energy_result described(const energy::Span& span, const energy::SourceInfo& source) {
  phonebit_energy_result result{};
  result.is_counter = source.is_counter ? 1 : 0;
  result.source = source.name.c_str();
  result.window_s = span.window_s;
  result.energy_mj = span.energy_mj;
  result.mean_mw = span.mean_mw();
  result.step_mj = span.step_mj;
  return result;
}

/// `measure` is Meter::read or Meter::stop.
phonebit_status give_span(phonebit_energy_meter* meter, phonebit_energy_result* result,
                          energy::Span (energy::Meter::*measure)()) {
  return guarded([&] {
    energy::Meter& own = given(meter, "meter").meter;
    phonebit_energy_result& target = given(result, "result");
    give(target, described((own.*measure)(), own.info()), "phonebit_energy_result");
  });
}

}  // namespace

phonebit_status phonebit_energy_source_count(int32_t* count) {
  return guarded([&] {
    int32_t& result = given(count, "count");
    list() = find_sources();
    result = static_cast<int32_t>(list().size());
  });
}

phonebit_status phonebit_energy_source_get(int32_t index, phonebit_energy_source_info* info) {
  return guarded([&] {
    phonebit_energy_source_info& result = given(info, "info");
    const Listed& listed =
        list()[checked_index(index, list().size(), "sources that phonebit_energy_source_count found")];
    phonebit_energy_source_info content{};
    content.is_counter = listed.info.is_counter ? 1 : 0;
    content.name = listed.info.name.c_str();
    content.description = listed.info.description.c_str();
    content.is_available = listed.is_available ? 1 : 0;
    content.period_ms = listed.info.period_s * 1e3;
    give(result, content, "phonebit_energy_source_info");
  });
}

phonebit_status phonebit_energy_meter_create(const char* source, phonebit_energy_meter** meter) {
  return guarded([&] {
    phonebit_energy_meter*& result = given(meter, "meter");
    result = new phonebit_energy_meter(energy::choose(source != nullptr ? source : ""));
  });
}

void phonebit_energy_meter_destroy(phonebit_energy_meter* meter) { delete meter; }

phonebit_status phonebit_energy_meter_start(phonebit_energy_meter* meter) {
  return guarded([&] { given(meter, "meter").meter.start(); });
}

phonebit_status phonebit_energy_meter_read(phonebit_energy_meter* meter, phonebit_energy_result* result) {
  return give_span(meter, result, &energy::Meter::read);
}

phonebit_status phonebit_energy_meter_stop(phonebit_energy_meter* meter, phonebit_energy_result* result) {
  return give_span(meter, result, &energy::Meter::stop);
}
