#include "threads/processor_topology.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "threads/affinity.h"

namespace phonebit::engine::threads {
namespace {

/// More processors than any kernel of today counts; numbers beyond are no processors.
constexpr int kMaxProcessors = 8192;

/// At this share of the strongest a processor of the weakest cluster is still big. Capacities say what a
/// processor does per time, so 0.7 leaves out every pair of designs that is called big and little. Clocks
/// say less, as a weak design often runs nearly as fast: only what differs by binning passes 0.9.
constexpr double kBigByCapacity = 0.7, kBigByClock = 0.9;

std::string first_line(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  char line[4096];  // the kernel's own are a page
  if (!file || std::fgets(line, sizeof line, file.get()) == nullptr) return {};
  return std::string(line, std::strcspn(line, "\n"));
}

/// A number from 0 to `most` at the start of `text`, which it consumes; -1 if there is none.
int take_number(const char*& text, const char* end, int maximum) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || value < 0 || value > maximum) return -1;
  text = stop;
  return value;
}

/// 0 where a file has no such number.
int read_number(const std::string& path, int maximum) {
  const std::string line = first_line(path);
  const char* text = line.data();
  return std::max(take_number(text, line.data() + line.size(), maximum), 0);
}

/// "0-3,5" as 0, 1, 2, 3, 5; nothing for other texts.
std::vector<int> parse_list(const std::string& list) {
  std::set<int> result;
  const char* text = list.data();
  const char* const end = text + list.size();
  while (text != end) {
    const int first = take_number(text, end, kMaxProcessors);
    int last = first;
    if (text != end && *text == '-') last = take_number(++text, end, kMaxProcessors);
    const bool is_last = text == end;
    if (first < 0 || last < first || (!is_last && *text != ',')) return {};
    for (int i = first; i <= last; ++i) result.insert(i);
    if (!is_last && ++text == end) return {};
  }
  return {result.begin(), result.end()};
}

/// Values relative to the largest, which becomes 1024; all 0 where one of them is unknown.
std::vector<int> relative(const std::vector<int>& values) {
  const int largest = *std::max_element(values.begin(), values.end());
  const bool is_complete = *std::min_element(values.begin(), values.end()) > 0;
  std::vector<int> result;
  for (const int value : values)
    result.push_back(is_complete ? static_cast<int>(int64_t{value} * 1024 / largest) : 0);
  return result;
}

void classify(std::vector<Processor>& processors, double big_share) {
  const auto is_weaker = [](const Processor& a, const Processor& b) { return a.capacity < b.capacity; };
  const auto [weakest, strongest] = std::minmax_element(processors.begin(), processors.end(), is_weaker);
  const int minimum = weakest->capacity, maximum = strongest->capacity;
  for (Processor& processor : processors) {
    const int capacity = processor.capacity;
    processor.is_big = capacity >= big_share * maximum || (capacity > minimum && 2 * capacity > maximum);
    processor.is_little = capacity == minimum;
  }
}

}  // namespace

std::vector<Processor> online_processors(const std::string& root) {
  const std::string folder = root + "/devices/system/cpu/";
  std::vector<int> numbers = parse_list(first_line(folder + "online"));
  if (numbers.empty()) numbers = allowed_processors();
  if (numbers.empty()) numbers = {0};
  std::vector<int> clocks, capacities;
  for (const int number : numbers) {
    const std::string own = folder + "cpu" + std::to_string(number);
    clocks.push_back(read_number(own + "/cpufreq/cpuinfo_max_freq", 1 << 30) / 1000);
    capacities.push_back(read_number(own + "/cpu_capacity", 1 << 20));
  }
  const std::vector<int> by_system = relative(capacities), by_clock = relative(clocks);
  const bool has_capacities = by_system[0] > 0;
  std::vector<Processor> result;
  for (size_t i = 0; i < numbers.size(); ++i)
    result.push_back({numbers[i], clocks[i], has_capacities ? by_system[i] : by_clock[i], true, true});
  classify(result, has_capacities ? kBigByCapacity : kBigByClock);
  return result;
}

}  // namespace phonebit::engine::threads
