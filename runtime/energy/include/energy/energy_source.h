// Sources of energy readings: files under /sys by which Linux and Android show what a processor, a board or a
// battery takes. A counter counts energy since some moment; two readings give what flowed between them. A
// power source tells the power of now; readings at a steady pace are integrated. Readings become numbers in
// one place only, energy_trace.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace phonebit::engine::energy {

/// One supply that is measured.
struct Rail {
  std::string name;        ///< as the machine calls it: "package-0", "VDD_IN"
  bool is_counted = true;  ///< whether it is a part of the sum; not where another rail contains it
};

/// What a source is.
struct SourceInfo {
  std::string name;         ///< "rapl", "ina", "odpm", "battery"
  std::string description;  ///< for people
  bool is_counter = false;  ///< readings are mJ that only grow; else mW
  double unit_mj = 0.0;   ///< smallest step that a counter's interface can show; 0 of power. The step that is
                          ///< seen, energy_trace.h, is mostly larger
  double period_s = 0.0;  ///< pace at which it is worth reading
  std::vector<Rail> rails;  ///< in the order of the readings
};

/// One thing that can be read. One thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const SourceInfo& info() const noexcept { return info_; }

  /// A reading of every rail: mJ since the source was made, or mW. Reads files, which blocks for as long as
  /// the driver takes; allocates. Throws Error(device) if one cannot be read or what it says is no number.
  virtual std::vector<double> read() = 0;

 protected:
  explicit Source(SourceInfo info) : info_(std::move(info)) {}

 private:
  SourceInfo info_;
};

using SourceList = std::vector<std::unique_ptr<Source>>;

/// Sources of one kind.
struct Finding {
  std::string kind;    ///< "rapl", "ina", "odpm" or "battery"
  SourceList sources;  ///< those that can be read now
  std::string absent;  ///< why there are none; "" where there are some
};

/// Looks for every kind below a root of the file system: a finding for each, those first that measure the
/// only little besides the processor. Each source found has been read once. Reads files. Any thread.
std::vector<Finding> discover(const std::string& root = "/");

/// The source of that name; with no name the first of discover(). All but "rapl" see every processor of a
/// phone or a board. Throws Error(device) "not measured: no source", and what was looked for, where there is
/// none.
std::unique_ptr<Source> choose(const std::string& name, const std::string& root = "/");

}  // namespace phonebit::engine::energy
