// Which processors are big and little, on made-up /sys trees, and which of them options choose.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "check_error.h"
#include "engine/thread_choice.h"
#include "temporary_folder.h"
#include "threads/affinity.h"
#include "threads/processor_topology.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using threads::online_processors;
using threads::Processor;
using Numbers = std::vector<int>;

/// A /sys of its own.
class FakeSys {
 public:
  FakeSys() { std::filesystem::create_directories(root_ / "devices/system/cpu"); }

  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ / "devices/system/cpu" / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  /// Negative: no such file.
  void processor(int number, int khz, int capacity) {
    const std::string own = "cpu" + std::to_string(number);
    if (khz >= 0) write(own + "/cpufreq/cpuinfo_max_freq", std::to_string(khz) + "\n");
    if (capacity >= 0) write(own + "/cpu_capacity", std::to_string(capacity) + "\n");
  }
  std::vector<Processor> processors() const { return online_processors(root_.string()); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path root_ = folder_.path();
};

Numbers chosen(const std::vector<Processor>& processors, bool Processor::* which) {
  Numbers result;
  for (const Processor& processor : processors) {
    if (processor.*which) result.push_back(processor.index);
  }
  return result;
}

void expect_clusters(const FakeSys& sys, const Numbers& big, const Numbers& little, const std::string& what) {
  const std::vector<Processor> processors = sys.processors();
  CHECK_MESSAGE(chosen(processors, &Processor::is_big) == big, what, ": big");
  CHECK_MESSAGE(chosen(processors, &Processor::is_little) == little, what, ": little");
}

TEST_CASE("phones") {
  FakeSys three;  // prime, big and little clusters
  three.write("online", "0-7\n");
  for (int i = 0; i < 4; ++i) three.processor(i, 1800000, 290);
  for (int i = 4; i < 7; ++i) three.processor(i, 2420000, 870);
  three.processor(7, 2840000, 1024);
  expect_clusters(three, {4, 5, 6, 7}, {0, 1, 2, 3}, "1+3+4");
  CHECK(three.processors()[7].max_mhz == 2840);
  CHECK(three.processors()[7].capacity == 1024);
  CHECK(three.processors()[0].max_mhz == 1800);
  CHECK(three.processors()[0].capacity == 290);

  FakeSys two;
  two.write("online", "0-7\n");
  for (int i = 0; i < 8; ++i) two.processor(i, i < 4 ? 1843200 : 2208000, i < 4 ? 640 : 1024);
  expect_clusters(two, {4, 5, 6, 7}, {0, 1, 2, 3}, "4+4 with a strong little cluster");

  FakeSys clocks;  // kernels without cpu_capacity: the A53 runs nearly as fast as the A73
  clocks.write("online", "0-7\n");
  for (int i = 0; i < 8; ++i) clocks.processor(i, i < 4 ? 1844000 : 2362000, -1);
  expect_clusters(clocks, {4, 5, 6, 7}, {0, 1, 2, 3}, "4+4 by clock");
  CHECK(clocks.processors()[7].capacity == 1024);
  CHECK(clocks.processors()[0].capacity == 799);

  FakeSys strong;  // two clusters, none of them weak
  strong.write("online", "0-7\n");
  for (int i = 0; i < 8; ++i) strong.processor(i, i < 6 ? 3532800 : 4320000, i < 6 ? 792 : 1024);
  expect_clusters(strong, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5}, "6+2 without weak cores");

  FakeSys middle;  // the middle cluster is weak as well
  middle.write("online", "0-9\n");
  for (int i = 0; i < 10; ++i) middle.processor(i, -1, i < 4 ? 350 : i < 8 ? 490 : 1024);
  expect_clusters(middle, {8, 9}, {0, 1, 2, 3}, "4+4+2");
}

TEST_CASE("others") {
  FakeSys uniform;
  uniform.write("online", "0-3\n");
  for (int i = 0; i < 4; ++i) uniform.processor(i, 3000000, 1024);
  expect_clusters(uniform, {0, 1, 2, 3}, {0, 1, 2, 3}, "all alike");

  FakeSys binned;  // the system prefers one processor by some per cent of clock
  binned.write("online", "0-3\n");
  for (int i = 0; i < 4; ++i) binned.processor(i, i == 2 ? 5000000 : 4900000, -1);
  expect_clusters(binned, {0, 1, 2, 3}, {0, 1, 3}, "binned");

  FakeSys silent;  // a container without cpufreq
  silent.write("online", "0-1\n");
  expect_clusters(silent, {0, 1}, {0, 1}, "nothing known");
  CHECK(silent.processors()[0].max_mhz == 0);
  CHECK(silent.processors()[0].capacity == 0);

  FakeSys partial;  // one value is missing, so none can be compared
  partial.write("online", "0-2\n");
  for (int i = 0; i < 3; ++i) partial.processor(i, i == 1 ? -1 : 1000000 * (i + 1), -1);
  expect_clusters(partial, {0, 1, 2}, {0, 1, 2}, "one clock missing");

  FakeSys offline;
  offline.write("online", "0,2-3,6\n");
  for (int i = 0; i < 8; ++i) offline.processor(i, -1, i < 4 ? 400 : 1024);
  expect_clusters(offline, {6}, {0, 2, 3}, "some are offline");
}

TEST_CASE("garbage") {
  const Numbers mine = threads::allowed_processors();
  for (const char* list :
       {"", "\n", "none", "3-1", "0-", "-2", "0,,1", "0,", "0-99999999999", "0 1", "0x1"}) {
    FakeSys sys;
    sys.write("online", list);
    expect_clusters(sys, mine, mine, std::string("online '") + list + "'");
  }
  CHECK(online_processors("/nowhere").size() == mine.size());

  FakeSys values;
  values.write("online", "0-1");
  for (const char* processor : {"cpu0", "cpu1"}) {
    values.write(std::string(processor) + "/cpu_capacity", "much");
    values.write(std::string(processor) + "/cpufreq/cpuinfo_max_freq", "-5");
  }
  expect_clusters(values, {0, 1}, {0, 1}, "values that are no numbers");
}

Numbers choose(Cores cores, const Numbers& list, const Numbers& allowed) {
  std::vector<Processor> online;
  for (int i = 0; i < 6; ++i) online.push_back({i, 0, i < 4 ? 300 : 1024, i >= 4, i < 4});
  Options options;
  options.cores = cores;
  options.core_list = list;
  return choose_cores(options, online, allowed);
}

TEST_CASE("choices") {
  const Numbers all = {0, 1, 2, 3, 4, 5};
  CHECK_MESSAGE(choose(Cores::any, {}, all).empty(), "any leaves the choice to the system");
  CHECK(choose(Cores::big, {}, all) == Numbers{4, 5});
  CHECK(choose(Cores::little, {}, all) == Numbers{0, 1, 2, 3});
  CHECK(choose(Cores::big, {}, {0, 1, 5}) == Numbers{5});
  CHECK(choose(Cores::little, {5, 1, 5}, all) == Numbers{1, 5});
  check_error(ErrorCode::input, {"big", "0, 1"}, "no big one allowed",
              [] { choose(Cores::big, {}, {0, 1}); });
  check_error(ErrorCode::input, {"processor 7", "0, 1, 2"}, "one that does not exist",
              [] { choose(Cores::any, {1, 7}, {0, 1, 2}); });
  check_error(ErrorCode::input, {"processor -1"}, "a negative one",
              [] { choose(Cores::any, {-1}, {0, 1, 2}); });
}

}  // namespace
