#include "coexec/kept_selection.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "format/pbit_records.h"
#include "gpu/binary_store.h"
#include "opencl/program_cache.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {
namespace {

static_assert(std::is_trivially_copyable_v<Selection>, "it is kept as its bytes");

std::string key_of(const loader::Model& model, const std::string& plan_key, const Options& options) {
  format::Header header;  // its checksum is of the whole file, plan included
  std::memcpy(&header, model.file.data(), sizeof header);
  std::string key = format_text("trial of " PHONEBIT_VERSION "\n%s\n%08x %zu %d %d %d %d", plan_key.c_str(),
                                static_cast<unsigned>(header.crc32), model.file.size(),
                                static_cast<int>(options.sharing), static_cast<int>(options.synchronization),
                                static_cast<int>(options.cores), static_cast<int>(options.hint));
  for (const int core : options.core_list) key += format_text(" %d", core);
  return key + "\n" + options.tuning;
}

}  // namespace

KeptSelection::KeptSelection(const loader::Model& model, const std::string& plan_key, const Options& options)
    : directory_(opencl::cache_directory(options.cache_directory)) {
  if (!directory_.empty()) key_ = key_of(model, plan_key, options);
}

std::optional<Selection> KeptSelection::load() const {
  if (directory_.empty()) return std::nullopt;
  const gpu::StoredBinary stored = gpu::BinaryStore(directory_).load(key_);
  if (!stored.binary || stored.binary->size() != sizeof(Selection)) return std::nullopt;
  Selection selection{};
  std::memcpy(static_cast<void*>(&selection), stored.binary->data(), sizeof selection);
  const auto fastest = static_cast<int>(selection.fastest);
  const bool is_time =
      std::all_of(selection.ms.begin(), selection.ms.end(), [](double ms) { return ms >= 0.0; });
  if (fastest < 0 || fastest >= static_cast<int>(kCandidates) || !is_time) return std::nullopt;
  return selection;
}

void KeptSelection::store(const Selection& selection) const {
  if (directory_.empty()) return;
  const std::string bytes(reinterpret_cast<const char*>(&selection), sizeof selection);
  gpu::BinaryStore(directory_).store(key_, bytes);
}

}  // namespace phonebit::engine::coexec
