// What of a plan is in the GPU's queue when the CPU begins a stage.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/op_part.h"
#include "coexec/schedule.h"
#include "doctest_strings.h"
#include "loader/loader.h"

namespace {

using namespace phonebit::engine;
using coexec::Schedule;
using loader::Model;

const Model& classifier() {
  static const Model model = loader::load_model(
      loader::FileBytes::of_path(PHONEBIT_SOURCE_DIR "/tests/golden/v1/tiny_classifier.pbit"));
  return model;
}

/// Each layer is a stage; `processor` says whose.
template <class ProcessorOf>
Schedule schedule_of(const ProcessorOf& processor) {
  const Model& model = classifier();
  ExecutionPlan plan{"any", "user", 0.0, {}};
  for (int i = 0; i < static_cast<int>(model.ops.size()); ++i)
    plan.parts.push_back(
        {i, processor(i), i, analysis::whole_part(model, model.ops[static_cast<size_t>(i)])});
  return Schedule(model, plan);
}

/// Kernels that are enqueued before the CPU begins each of its stages.
std::vector<size_t> enqueued(const Schedule& schedule, bool runs_ahead) {
  std::vector<size_t> counts;
  size_t end = 0, count = 0;
  for (size_t i = 0; i < schedule.stages().size(); ++i) {
    const size_t next = schedule.end_of_queue(end, i, runs_ahead);
    CHECK(next > i);  // or the CPU would wait for what nobody has enqueued
    for (; end < next; ++end) count += schedule.stages()[end].gpu.size();
    counts.push_back(count);
  }
  CHECK(end == schedule.stages().size());
  return counts;
}

TEST_CASE("where processors take turns the CPU begins before the rest is enqueued") {
  const Schedule schedule =
      schedule_of([](int layer) { return layer % 2 == 0 ? Processor::gpu : Processor::cpu; });
  const std::vector<size_t> ahead = enqueued(schedule, true), by_events = enqueued(schedule, false);
  CHECK(ahead.back() == (classifier().ops.size() + 1) / 2);
  // The input is the CPU's stage 0: the first layer waits for it, the third for the CPU's layer before it.
  CHECK(by_events[0] == 0);
  CHECK(ahead[0] == 2);
  for (size_t i = 0; i + 1 < ahead.size(); ++i) {
    // What the GPU can have run when the CPU has finished this stage; one more keeps its queue from running dry.
    CHECK(ahead[i] == std::min(by_events[i + 1] + 1, ahead.back()));
  }
}

TEST_CASE("the GPU has all that waits for nothing") {
  const Schedule schedule = schedule_of([](int) { return Processor::gpu; });
  const size_t all = classifier().ops.size();
  CHECK(enqueued(schedule, true)[0] == all);  // it begins when the CPU has put in the input
  CHECK(enqueued(schedule, false)[1] == all);
}

TEST_CASE("a CPU that works alone waits for no kernel") {
  const Schedule schedule = schedule_of([](int) { return Processor::cpu; });
  CHECK(enqueued(schedule, true).back() == 0);
}

}  // namespace
