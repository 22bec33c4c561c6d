// Which memories of an inference can be one: only where waiting has made sure that one is not used any more.
#include <cstddef>

#include "analysis/op_part.h"
#include "coexec/lifetimes.h"
#include "doctest_strings.h"
#include "loader/loader.h"

namespace {

using namespace phonebit::engine;
using coexec::Lifetime;
using coexec::LifetimeOrder;
using coexec::Moment;
using coexec::Schedule;

/// Each layer is a stage; `processor` says whose. Stage 0 takes the input in, so that layer i is stage i + 1.
template <class ProcessorOf>
Schedule schedule_of(const ProcessorOf& processor) {
  static const loader::Model model = loader::load_model(
      loader::FileBytes::of_path(PHONEBIT_SOURCE_DIR "/tests/golden/v1/tiny_classifier.pbit"));
  ExecutionPlan plan{"any", "user", 0.0, {}};
  for (int i = 0; i < static_cast<int>(model.ops.size()); ++i)
    plan.parts.push_back(
        {i, processor(i), i, analysis::whole_part(model, model.ops[static_cast<size_t>(i)])});
  return Schedule(model, plan);
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
