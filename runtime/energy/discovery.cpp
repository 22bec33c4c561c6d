// Which sources exist on this machine, and why the others do not.
#include "energy/sysfs_sources.h"
#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

Finding look(const char* kind, SourceList (*find)(const std::string&), const std::string& root) {
  try {
    return {kind, find(root), ""};
  } catch (const Error& error) {
    return {kind, {}, error.what()};
  }
}

}  // namespace

std::vector<Finding> discover(const std::string& root) {
  std::vector<Finding> findings;
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)  // no other processors have it
  findings.push_back(look("rapl", find_rapl, root));
#endif
#ifdef PHONEBIT_FOR_PHONES
  findings.push_back({"ina", {}, "boards such as Jetson have it, and no phone"});
#else
  findings.push_back(look("ina", find_ina, root));
#endif
  findings.push_back(look("odpm", find_odpm, root));
  findings.push_back(look("battery", find_battery, root));
  return findings;
}

std::unique_ptr<Source> choose(const std::string& name, const std::string& root) {
  std::string looked_for, names;
  for (Finding& finding : discover(root)) {
    if (!finding.absent.empty())
      looked_for += (looked_for.empty() ? "" : "; ") + finding.kind + ": " + finding.absent;
    for (std::unique_ptr<Source>& source : finding.sources) {
      if (name.empty() || source->info().name == name) return std::move(source);
      names += (names.empty() ? "; choose one of " : ", ") + source->info().name;
    }
  }
  const std::string where = name.empty() ? "" : "energy source '" + name + "': ";
  fail(ErrorCode::device, "%snot measured: no source (got %s)%s", where.c_str(), looked_for.c_str(),
       names.c_str());
}

}  // namespace phonebit::engine::energy
