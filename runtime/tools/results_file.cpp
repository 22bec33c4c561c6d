#include "results_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "failure.h"
#include "files.h"

namespace phonebit::tools {
namespace {

/// The order of a line that this program wrote; -1 for one that failed, which is tried again.
int measured_order(const std::string& where, const std::string& line) {
  int order = -1, after = 0;
  if (std::sscanf(line.c_str(), "{\"order\": %d, %n", &order, &after) != 1 || after == 0)
    fail("%s: not a line of results; give --collect a new folder", where.c_str());
  return line.compare(static_cast<size_t>(after), 9, "\"failed\":") == 0 ? -1 : order;
}

}  // namespace

ResultsFile::ResultsFile(std::string path, const std::string& head, bool resume) : path_(std::move(path)) {
  if (exists(path_) && !resume)
    fail("%s: the file is there already; add --resume to go on with it", path_.c_str());
  if (exists(path_)) go_on(head);
  if (!exists(path_)) append(head);
}

void ResultsFile::append(const std::string& line) {
  std::FILE* file = std::fopen(path_.c_str(), "ab");
  const bool is_written = file != nullptr && std::fprintf(file, "%s\n", line.c_str()) >= 0;
  const bool is_closed = file != nullptr && std::fclose(file) == 0;  // a full disk may show only now
  if (!is_written || !is_closed) fail("%s: %s", path_.c_str(), std::strerror(errno));
}

void ResultsFile::go_on(const std::string& head) {
  std::string text = read_text(path_);
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole == 0) {  // not even the first line was finished
    if (std::remove(path_.c_str()) != 0) fail("%s: %s", path_.c_str(), std::strerror(errno));
    return;
  }
  if (whole < text.size()) {
    text.resize(whole);
    write_bytes(path_, text.data(), text.size());
  }
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (number == 1 && line != head)
      fail("%s: results of other orders, another device or other settings; give --collect a new folder",
           path_.c_str());
    if (number > 1) measured_.insert(measured_order(path_ + ":" + std::to_string(number), line));
  }
}

}  // namespace phonebit::tools
