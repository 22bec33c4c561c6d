#include "gpu/tuning_table.h"

#include <iterator>
#include <set>

#include "gpu/text_fields.h"
#include "memory/ascending.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

/// A line of the table, or false for an empty one.
bool parse_line(std::string_view line, TuningEntry& into) {
  line = line.substr(0, line.find('#'));
  if (!take_word(line, into.op)) return false;
  if (!take_word(line, into.shape) || !take_word(line, into.vendor) || !take_word(line, into.family) ||
      !take_word(line, into.device))
    fail(ErrorCode::input, "expected op, shape, vendor, family, device, kernel and parameters");
  into.choice = KernelChoice::parse(std::string(line));
  return true;
}

/// Adds `weight` to the score where a field names what is there, and makes it negative where it names
/// another.
void compare(const std::string& field, const std::string& actual, int weight, int& score) {
  constexpr int kNever = -1000;
  if (field != "*") score += field == actual ? weight : kNever;
}

/// Negative if the entry is not for the device; else greater where it is more specific.
int device_score(const TuningEntry& entry, const DeviceFacts& device) {
  int score = 0;
  compare(entry.device, table_name(device.name), 16, score);
  compare(entry.family, device.family, 8, score);
  compare(entry.vendor, device.vendor, 4, score);
  return score;
}

/// The same for a layer on the device.
int specificity(const TuningEntry& entry, const TuningQuery& query, const DeviceFacts& device) {
  if (entry.op != query.op) return -1;
  int score = device_score(entry, device);
  if (entry.shape == query.signature) {
    score += 2;
  } else {
    compare(entry.shape, query.shape, 1, score);
  }
  return score;
}

std::string line_of(const TuningEntry& entry) {
  std::string line;
  for (const std::string* field : {&entry.op, &entry.shape, &entry.vendor, &entry.family, &entry.device})
    line += *field + " ";
  return line + entry.choice.text();
}

}  // namespace

TuningTable TuningTable::parse(std::string_view text, const std::string& origin) {
  TuningTable table;
  int number = 0;
  for (std::string_view line; take_line(text, line);) {
    ++number;
    try {
      TuningEntry entry;
      if (parse_line(line, entry)) table.entries_.push_back(std::move(entry));
    } catch (const Error& error) {
      fail(ErrorCode::input, "%s:%d: %s", origin.c_str(), number, error.what());
    }
  }
  return table;
}

void TuningTable::prepend(TuningTable other) {
  other.entries_.insert(other.entries_.end(), std::make_move_iterator(entries_.begin()),
                        std::make_move_iterator(entries_.end()));
  entries_ = std::move(other.entries_);
}

std::vector<KernelChoice> TuningTable::choices(const TuningQuery& query, const DeviceFacts& device) const {
  std::vector<const TuningEntry*> fitting;
  std::vector<uint64_t> keys;
  for (const TuningEntry& entry : entries_) {
    const int score = specificity(entry, query, device);
    if (score < 0) continue;
    fitting.push_back(&entry);
    keys.push_back(~static_cast<uint64_t>(score));
  }
  std::vector<KernelChoice> result;
  std::set<std::string> seen;
  for (const size_t i : memory::ascending(keys)) {
    const KernelChoice& choice = fitting[i]->choice;
    if (seen.insert(choice.full_text()).second) result.push_back(choice);
  }
  return result;
}

std::string TuningTable::text() const {
  std::string result;
  for (const TuningEntry& entry : entries_) result += line_of(entry) + "\n";
  return result;
}

std::vector<std::string> TuningTable::lines(const DeviceFacts& device) const {
  std::vector<std::string> result;
  for (const TuningEntry& entry : entries_) {
    if (device_score(entry, device) >= 0) result.push_back(line_of(entry));
  }
  return result;
}

std::string table_name(const std::string& device_name) {
  std::string name = device_name;
  for (char& c : name) {
    if (c == '#' || static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  return name.empty() || name == "*" ? "_" : name;
}

}  // namespace phonebit::engine::gpu
