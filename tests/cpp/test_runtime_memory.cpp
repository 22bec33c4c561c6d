// Arena plans, splits of work, copies of bits and the checksum, each against its definition.
#include <algorithm>
#include <random>
#include <vector>

#include "cpu/bit_copy.h"
#include "cpu/split.h"
#include "doctest_strings.h"
#include "loader/crc32.h"
#include "memory/arena_plan.h"
#include "parameters.h"

namespace {

using namespace phonebit::engine;
using memory::ArenaPlan;
using memory::Lifetime;

std::mt19937 random_number;

int pick(int low, int high) {
  return low + static_cast<int>(random_number() % static_cast<unsigned>(high - low + 1));
}

/// A network-like sequence: most buffers are read soon, some much later.
std::vector<Lifetime> random_lifetimes() {
  std::vector<Lifetime> buffers(static_cast<size_t>(pick(0, 60)));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int first = static_cast<int>(i) - pick(0, 1) * pick(0, static_cast<int>(i));
    buffers[i] = {static_cast<size_t>(pick(0, 3) == 0 ? pick(0, 100) : pick(1, 100000)), first,
                  first + (pick(0, 4) == 0 ? pick(0, 20) : pick(0, 2))};
  }
  return buffers;
}

/// The definition, pair by pair.
bool is_valid(const std::vector<Lifetime>& buffers, const ArenaPlan& plan) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    if (plan.offsets[a] % 64 != 0 || plan.offsets[a] + buffers[a].bytes > plan.bytes) return false;
    for (size_t b = 0; b < a; ++b) {
      const bool is_together = buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
      const bool is_overlapping = plan.offsets[a] < plan.offsets[b] + buffers[b].bytes &&
                                  plan.offsets[b] < plan.offsets[a] + buffers[a].bytes;
      if (is_together && is_overlapping && buffers[a].bytes > 0 && buffers[b].bytes > 0) return false;
    }
  }
  return true;
}

TEST_CASE("arena plans hold") {
  random_number.seed(test_seed());
  double worst = 1.0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<Lifetime> buffers = random_lifetimes();
    ArenaPlan plan = memory::plan_arena(buffers);
    int conflict[2];
    CHECK_MESSAGE(is_valid(buffers, plan), "no two live buffers overlap");
    CHECK_MESSAGE(memory::verify_arena(buffers, plan, conflict), "the verifier accepts the planner's plan");
    CHECK(plan.bytes >= plan.lower_bound_bytes);
    if (plan.lower_bound_bytes > 0)
      worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound_bytes));
    // The verifier is a second opinion only if it refuses what is wrong.
    if (buffers.empty()) continue;
    plan.offsets[static_cast<size_t>(pick(0, static_cast<int>(buffers.size()) - 1))] =
        static_cast<size_t>(pick(0, 2000)) * 32;
    CHECK(memory::verify_arena(buffers, plan, conflict) == is_valid(buffers, plan));
  }
  MESSAGE("at most ", worst, " of the lower bound in 500 random networks");
}

TEST_CASE("slot plans hold") {
  random_number.seed(test_seed());
  double worst = 1.0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<Lifetime> buffers = random_lifetimes();
    memory::SlotPlan plan = memory::plan_slots(buffers);
    const auto is_sound = [&] {
      for (size_t a = 0; a < buffers.size(); ++a) {
        if (buffers[a].bytes > plan.slot_bytes[static_cast<size_t>(plan.slot_of[a])]) return false;
        for (size_t b = 0; b < a; ++b) {
          if (plan.slot_of[a] == plan.slot_of[b] && buffers[a].first <= buffers[b].last &&
              buffers[b].first <= buffers[a].last)
            return false;
        }
      }
      return true;
    };
    int conflict[2];
    CHECK_MESSAGE(is_sound(), "no two live buffers share a slot, and each fits");
    CHECK_MESSAGE(memory::verify_slots(buffers, plan, conflict), "the verifier accepts the planner's slots");
    CHECK(plan.bytes() >= plan.lower_bound_bytes);
    if (plan.lower_bound_bytes > 0)
      worst =
          std::max(worst, static_cast<double>(plan.bytes()) / static_cast<double>(plan.lower_bound_bytes));
    if (buffers.empty() || plan.slot_bytes.empty()) continue;
    plan.slot_of[static_cast<size_t>(pick(0, static_cast<int>(buffers.size()) - 1))] =
        pick(0, static_cast<int>(plan.slot_bytes.size()) - 1);
    CHECK(memory::verify_slots(buffers, plan, conflict) == is_sound());
  }
  MESSAGE("at most ", worst, " of the lower bound in 500 random networks");
}

TEST_CASE("splits cover everything once") {
  random_number.seed(test_seed());
  for (int round = 0; round < 20000; ++round) {
    const int total = pick(0, 3000);
    const int grain = pick(1, 50);
    const cpu::Split split = cpu::make_split(total, grain, pick(0, 1000000), pick(1, 16));
    int end = 0;
    for (int part = 0; part < split.parts; ++part) {
      CHECK(split.begin(part) == end);
      CHECK(split.end(part) >= end);
      CHECK(split.begin(part) % grain == 0);
      CHECK_MESSAGE((total == 0 || split.end(part) > split.begin(part)), "no part is empty");
      end = split.end(part);
    }
    CHECK(end == total);
  }
}

bool bit(const std::vector<uint32_t>& words, int at) {
  return (words[static_cast<size_t>(at / 32)] >> (at % 32) & 1) != 0;
}

std::vector<uint32_t> random_bits(int count) {
  std::vector<uint32_t> words(static_cast<size_t>((count + 31) / 32));
  for (uint32_t& word : words) word = static_cast<uint32_t>(random_number());
  if (count % 32 != 0) words.back() &= (1u << count % 32) - 1;
  return words;
}

TEST_CASE("bits are copied") {
  random_number.seed(test_seed());
  for (int round = 0; round < 20000; ++round) {
    const int total = pick(1, 300);
    const int from = pick(0, total - 1);
    const int count = pick(1, total - from);
    const std::vector<uint32_t> source = random_bits(total);
    std::vector<uint32_t> target(static_cast<size_t>((count + 31) / 32), 0xDEADBEEFu);
    cpu::extract_bits(source.data(), from, count, target.data());
    bool is_right = count % 32 == 0 || target.back() >> (count % 32) == 0;
    for (int i = 0; i < count; ++i) is_right = is_right && bit(target, i) == bit(source, from + i);
    CHECK_MESSAGE(is_right, "extract_bits copies a run and clears the tail");

    const int counts[3] = {pick(1, 100), pick(1, 100), pick(1, 100)};
    const int joined = counts[0] + counts[1] + counts[2];
    std::vector<uint32_t> row(static_cast<size_t>((joined + 31) / 32), 0xDEADBEEFu);
    std::vector<bool> expected;
    int at = 0;
    for (const int run : counts) {
      const std::vector<uint32_t> words = random_bits(run);
      cpu::append_bits(row.data(), at, words.data(), run);
      for (int i = 0; i < run; ++i) expected.push_back(bit(words, i));
      at += run;
    }
    is_right = joined % 32 == 0 || row.back() >> (joined % 32) == 0;
    for (int i = 0; i < joined; ++i) is_right = is_right && bit(row, i) == expected[static_cast<size_t>(i)];
    CHECK_MESSAGE(is_right, "append_bits joins runs and leaves a clean tail");
  }
}

uint32_t crc_by_bits(const std::vector<unsigned char>& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

TEST_CASE("crc equals definition") {
  random_number.seed(test_seed());
  CHECK(loader::crc32(0, "123456789", 9) == 0xCBF43926u);
  for (int size = 0; size < 200; ++size) {
    std::vector<unsigned char> bytes(static_cast<size_t>(size));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random_number());
    const size_t cut = static_cast<size_t>(pick(0, size));
    const uint32_t first = loader::crc32(0, bytes.data(), cut);
    const uint32_t both = loader::crc32(first, bytes.data() + cut, bytes.size() - cut);
    CHECK(both == crc_by_bits(bytes));
  }
}

}  // namespace
