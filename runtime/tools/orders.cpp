#include "orders.h"

#include <climits>
#include <sstream>

#include "arguments.h"
#include "failure.h"
#include "files.h"

namespace phonebit::tools {
namespace {

/// A line of blank-separated words, read from its beginning.
class Words {
 public:
  Words(std::string where, const std::string& line) : where_(std::move(where)), words_(line) {}

  std::string word() {
    std::string word;
    if (!(words_ >> word)) fail("%s: a word is missing at the end", where_.c_str());
    return word;
  }

  std::optional<std::string> next() {
    std::string word;
    return words_ >> word ? std::optional(word) : std::nullopt;
  }

  int number(int lowest, int highest = INT_MAX) { return parse_number(where_, word(), lowest, highest); }

  void expect(const char* expected) {
    const std::string got = word();
    if (got != expected) fail("%s: got '%s', expected '%s'", where_.c_str(), got.c_str(), expected);
  }

  /// A file's name; no way out of the folder.
  std::string file() {
    const std::string name = word();
    if (name.find('/') != std::string::npos)
      fail("%s: '%s' is no name of a file", where_.c_str(), name.c_str());
    return name;
  }

  Way way() {
    const std::string sharing = word();
    return {sharing, word()};
  }

  void end() {
    const std::optional<std::string> more = next();
    if (more) fail("%s: '%s' at the end is one word too many", where_.c_str(), more->c_str());
  }

  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::istringstream words_;
};

/// "0:14:0:64", or "-" for nothing.
std::optional<Part> parse_part(const std::string& where, const std::string& text) {
  if (text == "-") return std::nullopt;
  std::istringstream stream(text);
  int32_t sides[4];
  for (int32_t& side : sides) {
    std::string number;
    std::getline(stream, number, ':');
    side = parse_number(where, number, 0, INT_MAX);
  }
  std::string rest;
  if (std::getline(stream, rest)) fail("%s: '%s' is no part of a layer", where.c_str(), text.c_str());
  return Part{sides[0], sides[1], sides[2], sides[3]};
}

PartPair parse_pair(const std::string& where, const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) fail("%s: '%s' is no pair of parts", where.c_str(), text.c_str());
  return {parse_part(where, text.substr(0, slash)), parse_part(where, text.substr(slash + 1))};
}

Order parse_order(Words& words, int number) {
  Order order{};
  order.number = words.number(number, number);
  order.file = words.file();
  order.layer = words.number(0);
  words.expect("threads");
  order.threads = words.number(1);
  words.expect("way");
  const Way way = words.way();
  if (way.sharing != "any") order.way = way;
  words.expect("turns");
  order.turns = words.number(1);
  words.expect("parts");
  while (const std::optional<std::string> pair = words.next())
    order.pairs.push_back(parse_pair(words.where(), *pair));
  return order;
}

ProbeOrder parse_noise_probe(Words& words) {
  ProbeOrder probe{};
  probe.file = words.file();
  probe.layer = words.number(0);
  probe.parts = parse_pair(words.where(), words.word());
  if (!probe.parts.cpu || !probe.parts.gpu)
    fail("%s: a processor has no part of the noise probe", words.where().c_str());
  words.expect("repeats");
  probe.repeats = words.number(1);
  words.expect("usual");
  probe.limits.usual_share = words.number(0, 100) / 100.0;
  words.expect("most");
  probe.limits.tolerance = words.number(100) / 100.0;
  words.expect("waits");
  probe.limits.max_wait_s = words.number(0);
  probe.limits.waits_per_measurement = words.number(0);
  return probe;
}

void parse_line(Words& words, OrderList& list) {
  const std::string kind = words.word();
  if (kind == "order") {
    list.orders.push_back(parse_order(words, static_cast<int>(list.orders.size())));
  } else if (kind == "probe") {
    list.probe_file = words.file();
    list.probe_layer = words.number(0);
  } else if (kind == "canary") {
    list.noise_probe = parse_noise_probe(words);
  } else if (kind == "sharing") {
    list.sharing_file = words.file();
  } else if (kind == "way") {
    list.ways.push_back(words.way());
  } else if (kind == "threads") {
    list.threads.push_back(words.number(1));
    while (const std::optional<std::string> count = words.next())
      list.threads.push_back(parse_number(words.where(), *count, 1, INT_MAX));
  } else {
    fail("%s: a line of an unknown kind '%s'", words.where().c_str(), kind.c_str());
  }
  words.end();
}

}  // namespace

OrderList read_orders(const std::string& folder) {
  const std::string path = folder + "/orders.txt";
  std::istringstream text(read_text(path));
  std::string line;
  OrderList list{};
  for (int number = 1; std::getline(text, line); ++number) {
    Words words(path + ":" + std::to_string(number), line);
    if (number > 1) {
      parse_line(words, list);
      continue;
    }
    words.expect("phonebit-orders");
    words.number(4, 4);  // the version
    list.identity = words.word();
    words.end();
  }
  if (list.probe_file.empty() || list.noise_probe.file.empty() || list.sharing_file.empty() ||
      list.ways.empty() || list.threads.empty())
    fail("%s: lines are missing at its beginning; write it again with phonebit collect --orders",
         path.c_str());
  return list;
}

}  // namespace phonebit::tools
