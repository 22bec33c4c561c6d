// Definitions of what phonebit.h declares. A part of it.
#pragma once

#include <algorithm>
#include <iterator>

#include "phonebit/fields.h"

namespace phonebit {
inline namespace v1 {
namespace detail {

/// A structure that the C interface has filled, or an empty one.
template <class Struct, class Get>
Struct filled(const Get& get) {
  auto content = PHONEBIT_INIT(Struct);
  if (get(&content) != PHONEBIT_OK) content = PHONEBIT_INIT(Struct);
  return content;
}

/// All elements of a list: `count` tells how many, `get` fills the one at an index, `convert` makes a value
/// of it.
template <class Struct, class Count, class Get, class Convert>
auto list_of(const Count& count, const Get& get, const Convert& convert)
    -> Result<std::vector<decltype(convert(std::declval<const Struct&>()))>> {
  std::vector<decltype(convert(std::declval<const Struct&>()))> list;
  int32_t size = 0;
  phonebit_status status = count(&size);
  for (int32_t i = 0; status == PHONEBIT_OK && i < size; ++i) {
    auto content = PHONEBIT_INIT(Struct);
    status = get(i, &content);
    if (status == PHONEBIT_OK) list.push_back(convert(content));
  }
  if (status != PHONEBIT_OK) return failure(status);
  return list;
}

inline DeviceInfo value_of(const phonebit_device_info& c) {
  return {static_cast<DeviceKind>(c.kind),
          c.name,
          c.description,
          c.driver,
          c.platform,
          c.version,
          c.vendor,
          c.family,
          c.capabilities,
          c.is_supported != 0,
          c.compute_units,
          c.clock_mhz,
          c.memory_bytes,
          c.local_bytes};
}

inline TensorInfo value_of(const phonebit_tensor_info& c) {
  return {c.name, static_cast<Type>(c.type), c.height, c.width, c.channels, static_cast<size_t>(c.bytes)};
}

inline LayerInfo value_of(const phonebit_layer_info& c) {
  return {c.name, c.kind, c.kernel, c.is_binary != 0, c.macs, c.weight_bytes};
}

inline Preprocessing value_of(const phonebit_preprocessing& c) {
  Preprocessing rule;
  assign_rule(rule, c);
  return rule;
}

inline phonebit_preprocessing c_value_of(const Preprocessing& rule) {
  auto c = PHONEBIT_INIT(phonebit_preprocessing);
  assign_rule(c, rule);
  return c;
}

inline phonebit_picture c_value_of(const Image& image) {
  auto c = PHONEBIT_INIT(phonebit_picture);
  assign_image(c, image);
  return c;
}

/// Owns the callback of an inference until it has been called.
inline void call_done(void* user, phonebit_status status, const char* error) {
  const std::unique_ptr<std::function<void(const Result<void>&)>> done(
      static_cast<std::function<void(const Result<void>&)>*>(user));
  (*done)(status == PHONEBIT_OK ? Result<void>() : Error{static_cast<Status>(status), error});
}

inline void add_self_test(void* user, const char* op, const char* kernel, int32_t is_passed,
                          const char* text) {
  static_cast<std::vector<SelfTestResult>*>(user)->push_back({op, kernel, is_passed != 0, text});
}

}  // namespace detail

inline Result<std::vector<DeviceInfo>> devices() {
  return detail::list_of<phonebit_device_info>(phonebit_device_count, phonebit_device_get,
                                               [](const auto& c) { return detail::value_of(c); });
}

inline Result<std::vector<CoreInfo>> cores() {
  return detail::list_of<phonebit_core_info>(
      phonebit_core_count, phonebit_core_get, [](const phonebit_core_info& c) -> CoreInfo {
        return {c.index, c.max_mhz, c.capacity, c.is_big != 0, c.is_little != 0};
      });
}

inline Result<std::vector<SelfTestResult>> self_test(const Options& options, bool is_again) {
  const auto handle = options.handle();
  if (!handle) return handle.error();
  std::vector<SelfTestResult> results;
  const phonebit_status status =
      phonebit_self_test(handle->get(), is_again ? 1 : 0, detail::add_self_test, &results);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return results;
}

template <class Load>
Result<Network> Network::load_by(const Options& options, const Load& load) {
  const auto handle = options.handle();
  if (!handle) return handle.error();
  phonebit_network* network = nullptr;
  const phonebit_status status = load(handle->get(), &network);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return Network(network);
}

inline Result<Network> Network::load(const std::string& path, const Options& options) {
  return load_by(options, [&](const phonebit_options* handle, phonebit_network** network) {
    return phonebit_network_load_path(path.c_str(), handle, network);
  });
}

inline Result<Network> Network::load_memory(Span<const uint8_t> file, const Options& options) {
  return load_by(options, [&](const phonebit_options* handle, phonebit_network** network) {
    return phonebit_network_load_memory(file.data(), file.size(), handle, network);
  });
}

inline Result<Network> Network::load_fd(int fd, int64_t offset, int64_t bytes, const Options& options) {
  return load_by(options, [&](const phonebit_options* handle, phonebit_network** network) {
    return phonebit_network_load_fd(fd, offset, bytes, handle, network);
  });
}

inline std::vector<TensorInfo> Network::inputs() const {
  return detail::list_of<phonebit_tensor_info>(
             [&](int32_t* count) { return phonebit_network_input_count(get(), count); },
             [&](int32_t i, auto* info) { return phonebit_network_input_get(get(), i, info); },
             [](const auto& c) { return detail::value_of(c); })
      .value_or({});
}

inline std::vector<TensorInfo> Network::outputs() const {
  return detail::list_of<phonebit_tensor_info>(
             [&](int32_t* count) { return phonebit_network_output_count(get(), count); },
             [&](int32_t i, auto* info) { return phonebit_network_output_get(get(), i, info); },
             [](const auto& c) { return detail::value_of(c); })
      .value_or({});
}

inline std::vector<LayerInfo> Network::layers() const {
  return detail::list_of<phonebit_layer_info>(
             [&](int32_t* count) { return phonebit_network_layer_count(get(), count); },
             [&](int32_t i, auto* info) { return phonebit_network_layer_get(get(), i, info); },
             [](const auto& c) { return detail::value_of(c); })
      .value_or({});
}

inline std::vector<std::string> Network::labels() const {
  std::vector<std::string> labels;
  int32_t count = 0;
  if (phonebit_network_label_count(get(), &count) != PHONEBIT_OK) return labels;
  for (int32_t i = 0; i < count; ++i) {
    const char* label = "";
    if (phonebit_network_label_get(get(), i, &label) == PHONEBIT_OK) labels.emplace_back(label);
  }
  return labels;
}

inline Result<int> Network::find_input(const std::string& name) const {
  int32_t index = 0;
  const phonebit_status status = phonebit_network_find_input(get(), name.c_str(), &index);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return index;
}

inline Result<int> Network::find_output(const std::string& name) const {
  int32_t index = 0;
  const phonebit_status status = phonebit_network_find_output(get(), name.c_str(), &index);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return index;
}

inline Result<Preprocessing> Network::preprocessing(int input) const {
  auto c = PHONEBIT_INIT(phonebit_preprocessing);
  const phonebit_status status = phonebit_network_preprocessing(get(), input, &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return detail::value_of(c);
}

inline Result<Detection> Network::detection(int output) const {
  auto c = PHONEBIT_INIT(phonebit_detection);
  const phonebit_status status = phonebit_network_detection(get(), output, &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return Detection{static_cast<Head>(c.head), {c.anchors, c.anchors + c.anchor_count}};
}

inline MemoryInfo Network::memory() const {
  return detail::filled<MemoryInfo>([&](auto* info) { return phonebit_network_memory(get(), info); });
}

inline StartupInfo Network::startup() const {
  const auto c = detail::filled<phonebit_startup_info>(
      [&](auto* info) { return phonebit_network_startup(get(), info); });
  return {c.programs_built, c.programs_loaded, c.cache_entries_rejected,
          c.self_tests_run, c.build_ms,        c.uses_command_buffer != 0};
}

inline std::string Network::text(phonebit_status (*get_text)(const phonebit_network*, const char**)) const {
  const char* found = "";
  return get_text(get(), &found) == PHONEBIT_OK ? found : "";
}

inline int Network::threads() const {
  int32_t threads = 0;
  return phonebit_network_threads(get(), &threads) == PHONEBIT_OK ? threads : 0;
}

inline std::vector<PlannedPart> Network::plan() const {
  int32_t count = 0;
  std::vector<PlannedPart> plan;
  if (phonebit_network_plan(get(), nullptr, 0, &count) != PHONEBIT_OK) return plan;
  std::vector<phonebit_planned_part> parts(static_cast<size_t>(count));
  if (phonebit_network_plan(get(), parts.data(), count, &count) != PHONEBIT_OK) return plan;
  for (const phonebit_planned_part& c : parts)
    plan.push_back({c.stage, static_cast<Processor>(c.processor), c.layer, c.part});
  return plan;
}

inline Result<CoexecInfo> Network::coexec() const {
  auto c = PHONEBIT_INIT(phonebit_coexec_info);
  const phonebit_status status = phonebit_network_coexec(get(), &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return CoexecInfo{static_cast<Sharing>(c.sharing),
                    static_cast<Synchronization>(c.synchronization),
                    c.is_on_cpu_alone != 0,
                    c.is_on_gpu_alone != 0,
                    c.is_on_trial != 0,
                    c.plan_ms,
                    c.cpu_ms,
                    c.gpu_ms};
}

inline std::vector<std::string> Network::warnings() const {
  std::vector<std::string> warnings;
  int32_t count = 0;
  if (phonebit_network_warning_count(get(), &count) != PHONEBIT_OK) return warnings;
  for (int32_t i = 0; i < count; ++i) {
    const char* warning = "";
    if (phonebit_network_warning_get(get(), i, &warning) == PHONEBIT_OK) warnings.emplace_back(warning);
  }
  return warnings;
}

inline Result<void> Network::forward(Span<const Input> inputs, Span<const Output> outputs, int batch) {
  return detail::result_of(phonebit_network_forward(get(), inputs.data(), static_cast<int32_t>(inputs.size()),
                                                    outputs.data(), static_cast<int32_t>(outputs.size()),
                                                    batch));
}

inline Result<Job> Network::forward_async(Span<const Input> inputs, Span<const Output> outputs, int batch,
                                          Done done) {
  auto callback = done ? std::make_unique<Done>(std::move(done)) : nullptr;
  phonebit_job* job = nullptr;
  const phonebit_status status =
      phonebit_network_forward_async(get(), inputs.data(), static_cast<int32_t>(inputs.size()),
                                     outputs.data(), static_cast<int32_t>(outputs.size()), batch,
                                     callback ? detail::call_done : nullptr, callback.get(), &job);
  if (status != PHONEBIT_OK) return detail::failure(status);
  callback.release();  // call_done has it
  return Job(job);
}

inline Result<std::vector<double>> Network::profile(Span<const Input> inputs, int batch, int repeats) {
  int32_t count = 0;
  phonebit_status status = phonebit_network_layer_count(get(), &count);
  std::vector<double> times(static_cast<size_t>(count));
  if (status == PHONEBIT_OK)
    status = phonebit_network_profile(get(), inputs.data(), static_cast<int32_t>(inputs.size()), batch,
                                      repeats, times.data(), count);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return times;
}

inline Result<std::vector<double>> Network::last_profile() {
  int32_t count = 0;
  phonebit_status status = phonebit_network_layer_count(get(), &count);
  std::vector<double> times(static_cast<size_t>(count));
  if (status == PHONEBIT_OK) status = phonebit_network_last_profile(get(), times.data(), count);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return times;
}

inline Result<void> Network::prepare_image(const Image& image, const Output& values, int input,
                                           const Preprocessing* rule) const {
  const phonebit_picture c_image = detail::c_value_of(image);
  const phonebit_preprocessing c_rule = detail::c_value_of(rule != nullptr ? *rule : Preprocessing());
  return detail::result_of(phonebit_network_prepare_picture(
      get(), input, &c_image, rule != nullptr ? &c_rule : nullptr, values.data, values.bytes));
}

inline Result<LayerTimes> Network::measure_layer(int layer, const Part* cpu, const Part* gpu, int repeats) {
  auto c = PHONEBIT_INIT(phonebit_layer_times);
  const phonebit_status status = phonebit_network_measure_layer(get(), layer, cpu, gpu, repeats, &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return LayerTimes{c.total_us, c.cpu_us, c.gpu_us};
}

inline Result<std::vector<DispatchInfo>> Network::dispatch(int layer, const Part& gpu) {
  int32_t count = 0;
  phonebit_status status = phonebit_network_dispatch(get(), layer, &gpu, nullptr, 0, &count);
  std::vector<phonebit_dispatch> launches(static_cast<size_t>(count), PHONEBIT_INIT(phonebit_dispatch));
  if (status == PHONEBIT_OK)
    status = phonebit_network_dispatch(get(), layer, &gpu, launches.data(), count, &count);
  if (status != PHONEBIT_OK) return detail::failure(status);
  std::vector<DispatchInfo> result;
  for (const phonebit_dispatch& c : launches) {
    result.push_back({c.kernel, c.choice, {}, {}});
    std::copy(std::begin(c.global), std::end(c.global), result.back().global);
    std::copy(std::begin(c.local), std::end(c.local), result.back().local);
  }
  return result;
}

inline Result<std::vector<EnergySourceInfo>> energy_sources() {
  return detail::list_of<phonebit_energy_source_info>(
      phonebit_energy_source_count, phonebit_energy_source_get,
      [](const phonebit_energy_source_info& c) -> EnergySourceInfo {
        return {c.name, c.description, c.is_counter != 0, c.is_available != 0, c.period_ms};
      });
}

inline Result<EnergyMeter> EnergyMeter::create(const std::string& source) {
  phonebit_energy_meter* meter = nullptr;
  const phonebit_status status =
      phonebit_energy_meter_create(source.empty() ? nullptr : source.c_str(), &meter);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return EnergyMeter(meter);
}

inline Result<EnergyResult> EnergyMeter::result(phonebit_status (*get)(phonebit_energy_meter*,
                                                                       phonebit_energy_result*)) {
  auto c = PHONEBIT_INIT(phonebit_energy_result);
  const phonebit_status status = get(handle_.get(), &c);
  if (status != PHONEBIT_OK) return detail::failure(status);
  return EnergyResult{c.source, c.is_counter != 0, c.window_s, c.energy_mj, c.mean_mw, c.step_mj};
}

}  // namespace v1
}  // namespace phonebit
