// What of a plan is in the GPU's queue when the CPU begins a stage, what processors wait for, and which memories of an
// inference can be one: only where waiting has made sure that one is not used any more.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/op_part.h"
#include "coexec/lifetimes.h"
#include "coexec/schedule.h"
#include "doctest_strings.h"
#include "loader/loader.h"

namespace {

using namespace phonebit::engine;
using coexec::Lifetime;
using coexec::LifetimeOrder;
using coexec::Moment;
using coexec::Schedule;
using loader::Model;

const Model& classifier() {
  static const Model model = loader::load_model(
      loader::FileBytes::of_path(PHONEBIT_SOURCE_DIR "/tests/golden/v1/tiny_classifier.pbit"));
  return model;
}

/// Each layer is a stage; `processor` says whose. Stage 0 takes the input in, so that layer i is stage i + 1.
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

/// The first convolution and its pool are cut at these channels, the GPU first; the rest is the GPU's.
Schedule cut_at(int of_conv, int of_pool) {
  const Model& model = classifier();
  ExecutionPlan plan{"any", "user", 0.0, {}};
  const int cuts[] = {of_conv, of_pool};
  for (int layer = 0; layer < static_cast<int>(model.ops.size()); ++layer) {
    const OutputPart whole = analysis::whole_part(model, model.ops[static_cast<size_t>(layer)]);
    OutputPart gpu = whole, cpu = whole;
    if (layer < 2) gpu.channel_end = cpu.channel_begin = cuts[layer];
    plan.parts.push_back({layer, Processor::gpu, layer, gpu});
    if (layer < 2) plan.parts.push_back({layer, Processor::cpu, layer, cpu});
  }
  return Schedule(model, plan);
}

TEST_CASE("a pool that is cut at its convolution's channels waits for nobody") {
  const Model& model = classifier();
  REQUIRE(model.ops[1].kind == format::OpKind::kMaxPool2d);
  const Schedule alike = cut_at(32, 32), up = cut_at(32, 48), down = cut_at(48, 32);
  const auto pool = [](const Schedule& schedule) { return schedule.stages()[2]; };
  const auto waits = [](const Schedule& schedule) {
    return std::count_if(schedule.stages().begin(), schedule.stages().end(), [](const coexec::Stage& stage) {
      return stage.cpu_waits || stage.gpu_waits_for >= 0;
    });
  };
  CHECK(!pool(alike).cpu_waits);
  CHECK(pool(alike).gpu_waits_for == -1);
  CHECK(pool(alike).to_cpu.empty());
  CHECK(alike.stages()[1].to_gpu.empty());
  CHECK(waits(alike) + 1 == waits(up));
  CHECK(waits(alike) + 1 == waits(down));
  // Only the channels between the cuts.
  REQUIRE(up.stages()[1].to_gpu.size() == 1);
  CHECK(up.stages()[1].to_gpu[0].part.channel_begin == 32);
  CHECK(up.stages()[1].to_gpu[0].part.channel_end == 48);
  REQUIRE(pool(down).to_cpu.size() == 1);
  CHECK(pool(down).to_cpu[0].part.channel_begin == 32);
  CHECK(pool(down).to_cpu[0].part.channel_end == 48);
}

TEST_CASE("the CPU reads whole words of packed bits") {
  const Schedule inside_word = cut_at(40, 40);
  const coexec::Stage& pool = inside_word.stages()[2];
  CHECK(pool.cpu_waits);
  CHECK(pool.gpu_waits_for == -1);
  REQUIRE(pool.to_cpu.size() == 1);
  CHECK(pool.to_cpu[0].part.channel_begin == 32);
  CHECK(pool.to_cpu[0].part.channel_end == 40);
}

Lifetime by_cpu(Moment first, Moment last) {
  Lifetime lifetime;
  lifetime.by_cpu(first);
  lifetime.by_cpu(last);
  return lifetime;
}

Lifetime by_gpu(Moment first, Moment last) {
  Lifetime lifetime;
  lifetime.by_gpu(first, last);
  return lifetime;
}

/// Written by the GPU in one stage, read by the CPU in the next.
Lifetime from_gpu_to_cpu(int stage) {
  Lifetime lifetime = by_gpu({stage}, {stage});
  lifetime.by_cpu({stage + 1});
  return lifetime;
}

TEST_CASE("one processor's memory is free in its next stage") {
  const LifetimeOrder order(schedule_of([](int) { return Processor::gpu; }));
  CHECK(order.can_share(by_gpu({1}, {2}), by_gpu({3}, {3})));
  CHECK(order.can_share(by_gpu({3}, {3}), by_gpu({1}, {2})));
  CHECK(!order.can_share(by_gpu({1}, {2}), by_gpu({2}, {3})));
  CHECK(order.can_share(by_cpu({0}, {0}), by_cpu({1}, {1})));
}

TEST_CASE(
    "in a stage of several layers one processor's memory is free for its next layer, not for the other") {
  const LifetimeOrder order(schedule_of([](int) { return Processor::gpu; }));
  CHECK(order.can_share(by_gpu({2, 1}, {2, 2}), by_gpu({2, 3}, {2, 4})));
  CHECK(!order.can_share(by_gpu({2, 1}, {2, 2}), by_gpu({2, 2}, {2, 3})));
  CHECK(order.can_share(by_cpu({2}, {2, 1}), by_cpu({2, 2}, {2, Moment::kEnd})));
  CHECK(!order.can_share(by_gpu({2, 1}, {2, 1}), by_cpu({2, 2}, {2, 2})));
}

TEST_CASE("the other's memory is free when it was waited for") {
  // The GPU has stages 1, 3, 5; each processor waits for the other at each of its own.
  const LifetimeOrder order(
      schedule_of([](int layer) { return layer % 2 == 0 ? Processor::gpu : Processor::cpu; }));
  CHECK(order.can_share(by_gpu({1}, {1}), by_cpu({2}, {2})));
  CHECK(order.can_share(by_cpu({2}, {2}), by_gpu({3}, {3})));
  CHECK(order.can_share(from_gpu_to_cpu(1), from_gpu_to_cpu(3)));
  CHECK(!order.can_share(from_gpu_to_cpu(1), by_gpu({2}, {2})));
  CHECK(order.stage_of_transfer(2) == 3);
}

TEST_CASE("the other's memory is not free where nobody waits") {
  const LifetimeOrder alone(schedule_of([](int) { return Processor::gpu; }));
  CHECK(!alone.can_share(by_gpu({1}, {1}), by_cpu({2}, {2})));  // the CPU does not wait before the end
  CHECK(!alone.can_share(by_cpu({1}, {1}), by_gpu({2}, {2})));  // the GPU has waited for stage 0 only
  CHECK(alone.can_share(by_cpu({0}, {0}), by_gpu({2}, {2})));
  const int stages = static_cast<int>(schedule_of([](int) { return Processor::gpu; }).stages().size());
  CHECK(
      alone.can_share(by_gpu({1}, {1}), by_cpu({stages - 1}, {stages - 1})));  // where results are given out
  CHECK(alone.stage_of_transfer(1) == stages);
}

TEST_CASE("what the GPU may still use when an inference ends is not shared") {
  // It has no part in the results: nobody waits for it.
  const LifetimeOrder order(schedule_of([](int) { return Processor::cpu; }));
  CHECK(!order.can_share(by_gpu({1}, {1}), by_gpu({2}, {2})));
  CHECK(order.can_share(by_cpu({1}, {1}), by_cpu({2}, {2})));
}

}  // namespace
