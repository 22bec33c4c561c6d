/* A lean library: what it was built without says so, in every function, and the rest works.
 *
 *   test_lean FOLDER    of golden .pbit files
 *
 * HAS_COEXECUTION, HAS_ENERGY, HAS_LAYERS: what the build kept.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "phonebit/phonebit_c.h"
#include "phonebit/phonebit_layers_c.h"

static phonebit_network* load_on(const char* path, const char* device) {
  phonebit_options* const options = cpu_options();
  OK(phonebit_options_set_device(options, device));
  phonebit_network* const network = load(path, options);
  phonebit_options_destroy(options);
  return network;
}

static void expect_no_coexecution(const char* planned) {
  phonebit_options* const options = cpu_options();
  phonebit_network* network = NULL;
  OK(phonebit_options_set_device(options, "gpu+cpu"));
  FAILS(phonebit_network_load_path(planned, options, &network), PHONEBIT_ERROR_DEVICE,
        "this library was built without co-execution (PHONEBIT_COEXECUTION=OFF); build it with "
        "PHONEBIT_COEXECUTION=ON, or open the network on one device (got 'gpu+cpu')");
  OK(phonebit_options_set_device(options, "gpu+tpu"));
  FAILS(phonebit_network_load_path(planned, options, &network), PHONEBIT_ERROR_INPUT, "'gpu+tpu' is unknown");
  EXPECT(network == NULL);
  phonebit_options_destroy(options);
}

static void expect_no_energy(void) {
  static const char* const text =
      "built without the energy meter (PHONEBIT_ENERGY=OFF); build it with PHONEBIT_ENERGY=ON";
  const phonebit_status status = PHONEBIT_ERROR_DEVICE;
  int32_t count = 7;
  phonebit_energy_source_info info = PHONEBIT_INIT(phonebit_energy_source_info);
  phonebit_energy_result result = PHONEBIT_INIT(phonebit_energy_result);
  phonebit_energy_meter* meter = NULL;
  FAILS(phonebit_energy_source_count(&count), status, text);
  FAILS(phonebit_energy_source_get(0, &info), status, text);
  FAILS(phonebit_energy_meter_create(NULL, &meter), status, text);
  FAILS(phonebit_energy_meter_start(meter), status, text);
  FAILS(phonebit_energy_meter_read(meter, &result), status, text);
  FAILS(phonebit_energy_meter_stop(meter, &result), status, text);
  EXPECT(count == 7 && meter == NULL);
  phonebit_energy_meter_destroy(meter);
}

static void expect_no_layers(void) {
  static const char* const text =
      "built without layers chained by hand (PHONEBIT_LAYERS=OFF); build it with PHONEBIT_LAYERS=ON";
  const phonebit_status status = PHONEBIT_ERROR_DEVICE;
  int32_t tensor = 7;
  phonebit_builder* builder = NULL;
  phonebit_network* network = NULL;
  const phonebit_epilogue epilogue = PHONEBIT_INIT(phonebit_epilogue);
  FAILS(phonebit_builder_create("net", &builder), status, text);
  FAILS(phonebit_builder_input(builder, "x", PHONEBIT_TYPE_U8, 4, 4, 3, &tensor), status, text);
  FAILS(phonebit_builder_conv2d(builder, 0, NULL, &tensor), status, text);
  FAILS(phonebit_builder_dense(builder, 0, NULL, &tensor), status, text);
  FAILS(phonebit_builder_max_pool(builder, 0, NULL, &tensor), status, text);
  FAILS(phonebit_builder_average_pool(builder, 0, NULL, &tensor), status, text);
  FAILS(phonebit_builder_pointwise(builder, 0, NULL, &epilogue, &tensor), status, text);
  FAILS(phonebit_builder_softmax(builder, 0, NULL, &tensor), status, text);
  FAILS(phonebit_builder_tensor(builder, 0, NULL), status, text);
  FAILS(phonebit_builder_output(builder, 0), status, text);
  FAILS(phonebit_builder_set_labels(builder, NULL, 0), status, text);
  FAILS(phonebit_builder_set_preprocessing(builder, 0, NULL), status, text);
  FAILS(phonebit_builder_network(builder, NULL, &network), status, text);
  FAILS(phonebit_builder_save(builder, "net.pbit"), status, text);
  EXPECT(tensor == 7 && builder == NULL && network == NULL);
  phonebit_builder_destroy(builder);
}

enum { kLevels = 1 << 16, kScores = 256 };

static void run(phonebit_network* network, float* scores, size_t* bytes) {
  static uint8_t levels[kLevels];
  phonebit_tensor_info info = PHONEBIT_INIT(phonebit_tensor_info);
  OK(phonebit_network_input_get(network, 0, &info));
  const phonebit_input in = {levels, (size_t)info.bytes};
  OK(phonebit_network_output_get(network, 0, &info));
  const phonebit_output out = {scores, *bytes = (size_t)info.bytes};
  if (in.bytes > sizeof levels || *bytes > kScores * sizeof(float)) abort();
  for (size_t i = 0; i < in.bytes; ++i) levels[i] = (uint8_t)(i * 37 + i / 251);
  OK(phonebit_network_forward(network, &in, 1, &out, 1, 1));
}

/* A file with a plan runs on one device, on which no plan is in force. */
static void test_one_device(const char* planned) {
  phonebit_network* const best = load_on(planned, "cpu");
  phonebit_network* const scalar = load_on(planned, "cpu:scalar");
  float scores[kScores] = {0}, expected[kScores] = {0}, zeros[kScores] = {0};
  size_t bytes = 0;
  run(scalar, expected, &bytes);
  run(best, scores, &bytes);
  EXPECT(memcmp(scores, expected, bytes) == 0 && memcmp(scores, zeros, bytes) != 0);

  int32_t count = 7;
  const char* key = NULL;
  phonebit_coexec_info coexec = PHONEBIT_INIT(phonebit_coexec_info);
  OK(phonebit_network_plan(best, NULL, 0, &count));
  OK(phonebit_network_plan_key(best, &key));
  EXPECT(count == 0 && strcmp(key, "") == 0);
  FAILS(phonebit_network_coexec(best, &coexec), PHONEBIT_ERROR_INPUT, "'gpu+cpu'");
  phonebit_network_destroy(best);
  phonebit_network_destroy(scalar);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: test_lean FOLDER\n");
    return 2;
  }
  char planned[4096];
  snprintf(planned, sizeof planned, "%s/planned_classifier.pbit", argv[1]);
  if (!HAS_COEXECUTION) expect_no_coexecution(planned);
  if (!HAS_ENERGY) expect_no_energy();
  if (!HAS_LAYERS) expect_no_layers();
  test_one_device(planned);
  return finish();
}
