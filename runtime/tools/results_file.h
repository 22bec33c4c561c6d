// results.jsonl: what a collection has measured, one JSON object a line. Lines are only appended, so an
// interrupted collection loses at most its last line.
#pragma once

#include <set>
#include <string>

namespace phonebit::tools {

/// A file of results that grows. The first line says whose they are.
class ResultsFile {
 public:
  /// Begins a file, or with `resume` goes on with one that is there: its first line must be `head`, and a
  /// last line that was cut off is taken away. Throws Failure if the file is another device's or may not be
  /// touched.
  ResultsFile(std::string path, const std::string& head, bool resume);

  /// Whether an order was measured before.
  bool has(int order) const { return measured_.count(order) != 0; }
  /// Adds a line. Throws Failure if it cannot be written.
  void append(const std::string& line);

 private:
  void go_on(const std::string& head);

  std::string path_;
  std::set<int> measured_;
};

}  // namespace phonebit::tools
