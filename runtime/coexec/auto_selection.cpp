#include "coexec/auto_selection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "format/pbit_records.h"
#include "gpu/binary_store.h"
#include "gpu/program_cache.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {
namespace {

/// Who was the fastest, and median milliseconds of an image; 0 of who took no part.
struct Selection {
  Candidate fastest;
  std::array<double, kCandidates> ms;
};
static_assert(std::is_trivially_copyable_v<Selection>, "it is kept as its bytes");
static_assert(kCandidates <= measure::Comparison::kMaxCandidates);

/// Of a file with its plan, on a device with its driver, for options that change times.
std::string key_of(const loader::Model& model, const std::string& plan_key, const Options& options) {
  format::Header header;  // its checksum is of the whole file, plan included
  std::memcpy(&header, model.file.data(), sizeof header);
  std::string key =
      format_text("trial of " PHONEBIT_VERSION "\n%s\n%08x %zu %d %d %d %d %d", plan_key.c_str(),
                  static_cast<unsigned>(header.crc32), model.file.size(), static_cast<int>(options.sharing),
                  static_cast<int>(options.synchronization), static_cast<int>(options.cores),
                  static_cast<int>(options.hint), static_cast<int>(options.precision));
  for (const int core : options.core_list) key += format_text(" %d", core);
  return key + "\n" + options.tuning;
}

std::optional<Selection> load_kept(const std::string& directory, const std::string& key) {
  const gpu::StoredBinary stored = gpu::BinaryStore(directory).load(key);
  if (!stored.binary || stored.binary->size() != sizeof(Selection)) return std::nullopt;
  Selection kept{};
  std::memcpy(static_cast<void*>(&kept), stored.binary->data(), sizeof kept);
  const auto fastest = static_cast<int>(kept.fastest);
  const bool is_time = std::all_of(kept.ms.begin(), kept.ms.end(), [](double ms) { return ms >= 0.0; });
  if (fastest < 0 || fastest >= static_cast<int>(kCandidates) || !is_time) return std::nullopt;
  return kept;
}

}  // namespace

AutoSelection::AutoSelection(const loader::Model& model, Setup& setup, const std::string& plan_key,
                             const Options& options, std::string label, Make make)
    : setup_(setup),
      label_(std::move(label)),
      kept_directory_(gpu::cache_directory(options.cache_directory)),
      kept_key_(key_of(model, plan_key, options)),
      make_(std::move(make)),
      selected_(planned()),  // of a plan for the CPU alone, layers on the GPU would only cost time
      is_over_(!setup.is_compared) {}

void AutoSelection::begin() {
  if (!is_over_ && begin_with_kept()) return;
  make(selected_);
  compare();
}

void AutoSelection::make(Candidate candidate) {
  if (backends_[index(candidate)] != nullptr) return;
  backends_[index(candidate)] = make_(candidate);
  setup_.add_warnings(find(candidate)->warnings());
}

void AutoSelection::select(Candidate candidate) {
  selected_ = candidate;
  for (size_t i = 0; i < kCandidates; ++i)
    if (i != index(candidate)) backends_[i].reset();
}

bool AutoSelection::begin_with_kept() {
  const std::optional<Selection> kept = load_kept(kept_directory_, kept_key_);
  if (!kept || (!setup_.uses_gpu && kept->fastest == Candidate::plan)) return false;
  try {
    make(kept->fastest);
  } catch (const Error&) {  // another comparison decides
    return false;
  }
  found_ms_ = kept->ms;
  select_fastest(kept->fastest);
  return true;
}

void AutoSelection::stop(bool for_good) {
  comparison_.reset();
  is_over_ = is_over_ || for_good;
  select(selected_);
}

void AutoSelection::leave_to_cpu() {
  stop(true);
  warning_.clear();
  make(Candidate::cpu);
  select(Candidate::cpu);
}

void AutoSelection::compare() {
  if (is_over_) return;
  std::vector<size_t> others;
  for (const Candidate candidate : {Candidate::plan, Candidate::cpu, Candidate::gpu})
    if (candidate != selected_ && (candidate != Candidate::plan || setup_.uses_gpu))
      others.push_back(index(candidate));
  comparison_.emplace(index(selected_), std::move(others));
  make_other();
}

void AutoSelection::make_other() {
  while (!comparison_->is_over()) {
    try {
      return make(static_cast<Candidate>(comparison_->other()));
    } catch (const Error& error) {  // e.g. more memory than it may take
      setup_.add_warnings({format_text("%s: auto-selection goes on without one of its candidates: %s",
                                       label_.c_str(), error.what())});
      comparison_->drop_other();
    }
  }
  end();
}

Candidate AutoSelection::next() const {
  return comparison_ ? static_cast<Candidate>(comparison_->next()) : selected_;
}

void AutoSelection::record(double milliseconds) {
  if (!comparison_) {
    if (watch_.has_become_slow(milliseconds, others_ms())) compare();
    return;
  }
  const size_t other = comparison_->other();
  comparison_->record(milliseconds);
  if (comparison_->is_over()) return end();
  if (comparison_->other() == other) return;
  // The slower one's memory goes before the next one takes its own.
  select(static_cast<Candidate>(comparison_->fastest()));
  make_other();
}

double AutoSelection::others_ms() const {
  double minimum = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kCandidates; ++i)
    if (i != index(selected_) && found_ms_[i] > 0.0) minimum = std::min(minimum, found_ms_[i]);
  return minimum;
}

void AutoSelection::end() {
  const auto compared = [&] {
    return std::count_if(found_ms_.begin(), found_ms_.end(), [](double ms) { return ms > 0.0; });
  };
  const bool is_first = compared() == 0;
  for (size_t i = 0; i < kCandidates; ++i) found_ms_[i] = comparison_->median_ms(i);
  const auto fastest = static_cast<Candidate>(comparison_->fastest());
  comparison_.reset();
  // What a plan loses later is of that time: networks that are loaded then begin with it, and are watched.
  if (compared() > 1 && (is_first || fastest == planned())) {
    const Selection found{fastest, found_ms_};
    gpu::BinaryStore(kept_directory_)
        .store(kept_key_, std::string(reinterpret_cast<const char*>(&found), sizeof found));
  }
  select_fastest(fastest);
}

void AutoSelection::select_fastest(Candidate fastest) {
  select(fastest);
  static constexpr const char* kNames[] = {"the plan", "the CPU alone", "the GPU alone"};
  const size_t before = index(planned()), after = index(fastest);
  warning_.clear();
  if (before == after) return;
  warning_ = format_text(
      "%s: tried here, %s takes %.3g ms, %s %.3g ms; %s does everything from now "
      "on; 'phonebit plan' makes a plan by measuring",
      label_.c_str(), kNames[before], found_ms_[before], kNames[after], found_ms_[after], kNames[after]);
}

}  // namespace phonebit::engine::coexec
