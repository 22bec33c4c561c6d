/* The C interface up to a loaded network, with the errors it reports; test_c_running.c goes on. C11 and
 * nothing but the header: these files also prove that the interface is C.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "phonebit/phonebit_c.h"

static void test_version_and_status(void) {
  EXPECT(phonebit_c_api_version() == PHONEBIT_C_API_VERSION);
  EXPECT(strcmp(phonebit_version(), "") > 0);
  EXPECT(strcmp(phonebit_status_name(PHONEBIT_OK), "ok") == 0);
  EXPECT(strcmp(phonebit_status_name(PHONEBIT_PENDING), "pending") == 0);
  EXPECT(strcmp(phonebit_status_name(1234), "unknown") == 0);
  EXPECT(strcmp(phonebit_last_error(), "") == 0);
}

static void test_devices(void) {
  int32_t count = -1;
  OK(phonebit_device_count(&count));
  EXPECT(count >= 1);
  REFUSED(phonebit_device_count(NULL), "count: got NULL");
  phonebit_device_info info = PHONEBIT_INIT(phonebit_device_info);
  OK(phonebit_device_get(0, &info));
  EXPECT(info.kind == PHONEBIT_DEVICE_CPU && strncmp(info.name, "cpu:", 4) == 0);
  EXPECT(info.compute_units >= 1);
  REFUSED(phonebit_device_get(count, &info), "number of devices");
  REFUSED(phonebit_device_get(-1, &info), "got -1");
  REFUSED(phonebit_device_get(0, NULL), "info: got NULL");
  EXPECT((strcmp(phonebit_opencl_error(), "") == 0) == has_opencl());
  REFUSED(phonebit_use_opencl_library(NULL), "path: got NULL");
  if (has_opencl()) OK(phonebit_use_opencl_library("/none")); /* in use already: no effect */

  OK(phonebit_core_count(&count));
  EXPECT(count >= 1);
  phonebit_core_info core = PHONEBIT_INIT(phonebit_core_info);
  OK(phonebit_core_get(0, &core));
  EXPECT(core.index >= 0);
  REFUSED(phonebit_core_get(count, &core), "number of cores");
}

/* A structure of an older program is filled as far as it goes; absurd sizes are refused. */
static void test_struct_sizes(void) {
  phonebit_device_info info = PHONEBIT_INIT(phonebit_device_info);
  const char* const untouched = "untouched";
  info.name = info.description = untouched;
  info.struct_size = (uint32_t)offsetof(phonebit_device_info, description);
  OK(phonebit_device_get(0, &info));
  EXPECT(info.name != untouched && info.description == untouched);
  EXPECT(info.struct_size == offsetof(phonebit_device_info, description));
  info.struct_size = 0;
  REFUSED(phonebit_device_get(0, &info), "PHONEBIT_INIT(phonebit_device_info)");
  info.struct_size = 0xffffffffu;
  REFUSED(phonebit_device_get(0, &info), "struct_size is 4294967295");
  struct {
    phonebit_core_info known;
    int32_t later;
  } newer = {PHONEBIT_INIT(phonebit_core_info), 77};
  newer.known.struct_size = (uint32_t)sizeof newer;
  OK(phonebit_core_get(0, &newer.known));
  EXPECT(newer.later == 77 && newer.known.struct_size == sizeof newer);
}

static void test_options(void) {
  REFUSED(phonebit_options_create(NULL), "options: got NULL");
  phonebit_options* options = cpu_options();
  REFUSED(phonebit_options_set_device(NULL, "cpu"), "options: got NULL");
  REFUSED(phonebit_options_set_device(options, NULL), "device: got NULL");
  OK(phonebit_options_set_cores(options, PHONEBIT_CORES_BIG));
  REFUSED(phonebit_options_set_cores(options, 3), "cores: got 3, expected 0 to 2");
  OK(phonebit_options_set_cores(options, PHONEBIT_CORES_ANY));
  OK(phonebit_options_set_hint(options, PHONEBIT_HINT_PERFORMANCE));
  REFUSED(phonebit_options_set_hint(options, -1), "hint: got -1");
  OK(phonebit_options_set_precision(options, PHONEBIT_PRECISION_EXACT));
  REFUSED(phonebit_options_set_precision(options, 9), "precision: got 9");
  OK(phonebit_options_set_sharing(options, PHONEBIT_SHARING_COPY));
  REFUSED(phonebit_options_set_sharing(options, 4), "sharing: got 4");
  OK(phonebit_options_set_synchronization(options, PHONEBIT_SYNCHRONIZATION_EVENTS));
  REFUSED(phonebit_options_set_synchronization(options, 4), "synchronization: got 4");
  OK(phonebit_options_set_sync_limit(options, 500));
  REFUSED(phonebit_options_set_sync_limit(options, -1), "limit_ms: got -1");
  OK(phonebit_options_set_in_place(options, 0));
  OK(phonebit_options_set_levels(options, 0));
  OK(phonebit_options_set_max_work(options, 1e9));
  OK(phonebit_options_set_trial(options, 0));
  OK(phonebit_options_set_command_buffer(options, 0));
  OK(phonebit_options_set_cache_directory(options, "/tmp"));
  OK(phonebit_options_set_tuning(options, ""));
  OK(phonebit_options_set_profiling(options, 1));
  OK(phonebit_options_set_max_memory(options, 1u << 30));
  phonebit_planned_part part = {0, 2, 0, {0, 1, 0, 1}};
  REFUSED(phonebit_options_set_plan(options, &part, 1), "processor: got 2");
  REFUSED(phonebit_options_set_plan(options, NULL, 1), "parts: got NULL");
  REFUSED(phonebit_options_set_plan(options, &part, -1), "parts: got -1");
  OK(phonebit_options_set_plan(options, NULL, 0));
  REFUSED(phonebit_options_set_opencl(options, NULL, NULL, NULL), "context: got NULL");
  OK(phonebit_options_set_core_list(options, NULL, 0));
  REFUSED(phonebit_options_set_core_list(options, NULL, -2), "cores: got -2");
  const int32_t nowhere[] = {100000};
  phonebit_network* network = NULL;
  OK(phonebit_options_set_core_list(options, nowhere, 1));
  REFUSED(phonebit_network_load_path(classifier, options, &network), "100000");
  OK(phonebit_options_set_core_list(options, NULL, 0));
  OK(phonebit_options_set_threads(options, -1));
  REFUSED(phonebit_network_load_path(classifier, options, &network), "threads: got -1");
  OK(phonebit_options_set_threads(options, 2));
  OK(phonebit_options_set_device(options, "abacus"));
  REFUSED(phonebit_network_load_path(classifier, options, &network), "'abacus'");
  EXPECT(network == NULL);
  phonebit_options_destroy(options);
  phonebit_options_destroy(NULL);
}

static void test_loading(void) {
  phonebit_options* options = cpu_options();
  phonebit_network* network = NULL;
  REFUSED(phonebit_network_load_path(NULL, options, &network), "path: got NULL");
  REFUSED(phonebit_network_load_path(classifier, options, NULL), "network: got NULL");
  REFUSED(phonebit_network_load_path("/no/such.pbit", options, &network), "/no/such.pbit");
  REFUSED(phonebit_network_load_memory(NULL, 3, options, &network), "data: got NULL");
  FAILS(phonebit_network_load_memory("PBIT", 4, options, &network), PHONEBIT_ERROR_FORMAT,
        "memory of 4 bytes");
  REFUSED(phonebit_network_load_fd(-1, 0, 0, options, &network), "descriptor -1");
  EXPECT(network == NULL);

  size_t bytes = 0;
  char* const file = read_file(classifier, &bytes);
  OK(phonebit_network_load_memory(file, bytes, options, &network));
  phonebit_network_destroy(network);
  free(file);

  const int fd = open(classifier, O_RDONLY);
  OK(phonebit_network_load_fd(fd, 0, 0, options, &network));
  close(fd);
  int32_t layers = 0;
  OK(phonebit_network_layer_count(network, &layers));
  EXPECT(layers > 0);
  phonebit_network_destroy(network);
  phonebit_network_destroy(NULL);
  phonebit_options_destroy(options);
}

static void test_tensors(const phonebit_network* network) {
  int32_t count = 0, index = -1;
  phonebit_tensor_info info = PHONEBIT_INIT(phonebit_tensor_info);
  OK(phonebit_network_input_count(network, &count));
  EXPECT(count == 1);
  OK(phonebit_network_input_get(network, 0, &info));
  EXPECT(info.type == PHONEBIT_TYPE_U8);
  EXPECT(info.bytes == (uint64_t)info.height * (uint64_t)info.width * (uint64_t)info.channels);
  OK(phonebit_network_find_input(network, info.name, &index));
  EXPECT(index == 0);
  REFUSED(phonebit_network_find_input(network, "nobody", &index), "'nobody'");
  REFUSED(phonebit_network_find_input(network, NULL, &index), "name: got NULL");
  REFUSED(phonebit_network_input_get(network, 1, &info), "number of inputs, 1");
  REFUSED(phonebit_network_input_count(NULL, &count), "network: got NULL");
  OK(phonebit_network_output_count(network, &count));
  EXPECT(count == 1);
  OK(phonebit_network_output_get(network, 0, &info));
  EXPECT(info.type == PHONEBIT_TYPE_F32 && info.bytes == 4u * (uint64_t)info.channels);
  OK(phonebit_network_find_output(network, info.name, &index));
  REFUSED(phonebit_network_find_output(network, "nobody", &index), info.name);
  REFUSED(phonebit_network_output_get(network, -1, &info), "got -1");
}

static void test_facts(const phonebit_network* network) {
  int32_t count = 0;
  phonebit_layer_info layer = PHONEBIT_INIT(phonebit_layer_info);
  OK(phonebit_network_layer_count(network, &count));
  OK(phonebit_network_layer_get(network, count - 1, &layer));
  EXPECT(strlen(layer.name) > 0 && strlen(layer.kind) > 0 && strlen(layer.kernel) > 0);
  REFUSED(phonebit_network_layer_get(network, count, &layer), "number of layers");
  const char* text = NULL;
  OK(phonebit_network_label_count(network, &count));
  if (count > 0) OK(phonebit_network_label_get(network, count - 1, &text));
  REFUSED(phonebit_network_label_get(network, count, &text), "number of labels");
  phonebit_memory_info memory = PHONEBIT_INIT(phonebit_memory_info);
  OK(phonebit_network_memory(network, &memory));
  EXPECT(memory.arena_bytes >= memory.lower_bound_bytes && memory.file_bytes > 0);
  REFUSED(phonebit_network_memory(network, NULL), "info: got NULL");
  phonebit_startup_info startup = PHONEBIT_INIT(phonebit_startup_info);
  OK(phonebit_network_startup(network, &startup));
  EXPECT(startup.programs_built == 0);
  OK(phonebit_network_metadata(network, &text));
  EXPECT(text != NULL);
  OK(phonebit_network_device(network, &text));
  EXPECT(strncmp(text, "cpu:", 4) == 0);
  REFUSED(phonebit_network_device(network, NULL), "device: got NULL");
  OK(phonebit_network_plan_key(network, &text));
  EXPECT(strcmp(text, "") == 0);
  OK(phonebit_network_threads(network, &count));
  EXPECT(count == 2);
  OK(phonebit_network_plan(network, NULL, 0, &count));
  EXPECT(count == 0);
  phonebit_coexec_info coexec = PHONEBIT_INIT(phonebit_coexec_info);
  REFUSED(phonebit_network_coexec(network, &coexec), "'gpu+cpu'");
  phonebit_detection detection = PHONEBIT_INIT(phonebit_detection);
  OK(phonebit_network_detection(network, 0, &detection));
  EXPECT(detection.head == PHONEBIT_HEAD_NONE && detection.anchor_count == 0);
  REFUSED(phonebit_network_detection(network, 1, &detection), "number of outputs");
}

static void test_warnings(phonebit_network* network) {
  int32_t count = -1;
  const char* text = NULL;
  OK(phonebit_network_warning_count(network, &count));
  EXPECT(count == 0);
  REFUSED(phonebit_network_warning_get(network, 0, &text), "number of warnings, 0");
}

static void test_energy(void) {
  int32_t count = 0, available = 0;
  phonebit_energy_source_info info = PHONEBIT_INIT(phonebit_energy_source_info);
  REFUSED(phonebit_energy_source_get(0, &info), "phonebit_energy_source_count");
  OK(phonebit_energy_source_count(&count));
  EXPECT(count >= 3); /* ina, odpm, battery, of x86 rapl: each is there, or is absent for a reason */
  for (int32_t i = 0; i < count; ++i) {
    OK(phonebit_energy_source_get(i, &info));
    EXPECT(strlen(info.name) > 0 && strlen(info.description) > 0);
    available += info.is_available;
  }
  phonebit_energy_meter* meter = NULL;
  phonebit_energy_result result = PHONEBIT_INIT(phonebit_energy_result);
  FAILS(phonebit_energy_meter_create("perpetuum mobile", &meter), PHONEBIT_ERROR_DEVICE, "perpetuum mobile");
  REFUSED(phonebit_energy_meter_create(NULL, NULL), "meter: got NULL");
  if (available == 0) {
    FAILS(phonebit_energy_meter_create(NULL, &meter), PHONEBIT_ERROR_DEVICE, "not measured: no source");
  } else {
    OK(phonebit_energy_meter_create(NULL, &meter));
    REFUSED(phonebit_energy_meter_read(meter, &result), "start");
  }
  phonebit_energy_meter_destroy(meter);
  REFUSED(phonebit_energy_meter_start(NULL), "meter: got NULL");
  REFUSED(phonebit_energy_meter_read(NULL, &result), "meter: got NULL");
  REFUSED(phonebit_energy_meter_stop(NULL, &result), "meter: got NULL");
}

int main(void) {
  test_version_and_status();
  test_devices();
  test_struct_sizes();
  test_options();
  test_loading();
  phonebit_options* const options = cpu_options();
  phonebit_network* const network = load(classifier, options);
  test_tensors(network);
  test_facts(network);
  test_warnings(network);
  test_energy();
  phonebit_network_destroy(network);
  phonebit_options_destroy(options);
  return finish();
}
