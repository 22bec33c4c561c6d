// Vendor and family of a device, the keys of the tuning table, from its device.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "gpu/device_facts.h"

namespace phonebit::engine::gpu {
namespace {

std::string lower(std::string result) {
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// The digits that follow the first `marker`, perhaps after "(tm)", blanks and dashes; empty if there are
/// none.
std::string digits_after(const std::string& text, const char* marker) {
  size_t at = text.find(marker);
  if (at == std::string::npos) return "";
  at += std::strlen(marker);
  const auto skip = [&] { at = std::min(text.find_first_not_of(" -", at), text.size()); };
  skip();
  if (text.compare(at, 4, "(tm)") == 0) at += 4;
  skip();
  size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return text.substr(at, end - at);
}

/// By compute capability, 10 * major + minor.
std::string nvidia_family(int capability) {
  struct Range {
    int first, last;
    const char* family;
  };
  static const Range ranges[] = {{30, 37, "kepler"}, {50, 53, "maxwell"}, {60, 62, "pascal"},
                                 {70, 72, "volta"},  {75, 75, "turing"},  {80, 88, "ampere"},
                                 {89, 89, "ada"},    {90, 99, "hopper"},  {100, 129, "blackwell"}};
  for (const Range& range : ranges) {
    if (capability >= range.first && capability <= range.last) return range.family;
  }
  return "unknown";
}

/// "adreno6xx" from "QUALCOMM Adreno(TM) 640", where some drivers have the number in the version only; Mesa
/// says "FD640" or "Adreno 640".
std::string adreno_family(const std::string& name, const std::string& version) {
  for (const std::string& number :
       {digits_after(name, "adreno"), digits_after(version, "adreno"), digits_after(name, "fd")}) {
    if (number.size() == 3) return std::string("adreno") + number[0] + "xx";
  }
  // Of notebooks: X1 is the architecture of the seventh series, X2 that of the eighth.
  if (contains(name, "x1-")) return "adreno7xx";
  if (contains(name, "x2-")) return "adreno8xx";
  return "unknown";
}

/// Arm's model numbers do not sort by architecture.
std::string mali_family(const std::string& name) {
  if (!digits_after(name, "mali-t").empty()) return "midgard";
  static const std::pair<const char*, const char*> families[] = {
      {" 31 51 52 71 72 76 ", "bifrost"},
      {" 57 68 77 78 310 510 610 710 615 715 ", "valhall"},
      {" 620 720 625 725 925 1 ", "mali5"}};
  std::string model = digits_after(name, "mali-g");
  if (model.empty()) model = digits_after(name, "immortalis-g");
  if (model.empty()) model = digits_after(name, "mali g");
  for (const auto& [models, family] : families) {
    if (contains(models, (" " + model + " ").c_str())) return family;
  }
  return "unknown";
}

bool is_mali(const std::string& name) { return contains(name, "mali") || contains(name, "immortalis"); }

/// "FD640", not any name with these letters.
bool is_adreno(const std::string& name) {
  return contains(name, "adreno") || (name.rfind("fd", 0) == 0 && digits_after(name, "fd").size() == 3);
}

}  // namespace

std::string vendor_of(const DeviceFacts& device) {
  // Whose compiler it is counts more than whose silicon.
  const std::string platform = lower(device.platform_name);
  if (contains(platform, "portable computing language")) return "pocl";
  if (contains(platform, "rusticl") || contains(platform, "clover")) return "mesa";
  const std::string name = lower(device.name);
  const std::string vendor = lower(device.vendor_name);
  if (contains(vendor, "nvidia")) return "nvidia";
  if (is_adreno(name) || contains(vendor, "qualcomm")) return "qualcomm";
  if (is_mali(name) || vendor == "arm" || vendor.rfind("arm ", 0) == 0) return "arm";
  if (contains(vendor, "intel")) return "intel";
  if (contains(vendor, "advanced micro devices") || vendor.rfind("amd", 0) == 0) return "amd";
  if (contains(vendor, "apple")) return "apple";
  return "unknown";
}

std::string family_of(const DeviceFacts& device, int compute_capability) {
  const std::string name = lower(device.name);
  if (compute_capability > 0) return nvidia_family(compute_capability);
  if (is_adreno(name) || vendor_of(device) == "qualcomm") return adreno_family(name, lower(device.version));
  if (is_mali(name)) return mali_family(name);
  for (const char* family : {"powervr", "xclipse"}) {
    if (contains(name, family)) return family;
  }
  return device.is_gpu && !contains(name, "llvmpipe") ? "unknown" : "cpu";
}

std::string DeviceFacts::key() const { return name + " | " + platform_name + " | " + driver_version; }

}  // namespace phonebit::engine::gpu
