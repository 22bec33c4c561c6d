/* For the tests in C, which doctest cannot compile: what does not hold is printed and counted. */
#ifndef PHONEBIT_TESTS_CHECK_H
#define PHONEBIT_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phonebit/phonebit_c.h"

static int failures = 0;

static inline void expect_at(int condition, const char* claim, int line) {
  if (condition || failures++ > 20) return;
  fprintf(stderr, "FAIL line %d: %s (last error: %s)\n", line, claim, phonebit_last_error());
}

static inline void expect_failure(phonebit_status got, phonebit_status wanted, const char* part,
                                  const char* call, int line) {
  expect_at(got == wanted, call, line);
  if (got == wanted && strstr(phonebit_last_error(), part) == NULL) {
    ++failures;
    fprintf(stderr, "FAIL line %d: %s\n  says '%s',\n  expected '%s'\n", line, call, phonebit_last_error(),
            part);
  }
}

#define EXPECT(condition) expect_at((condition) ? 1 : 0, #condition, __LINE__)
#define OK(call) expect_at((call) == PHONEBIT_OK, #call, __LINE__)
/* Fails with this status and a text that has `part` in it; REFUSED: what the caller gave is wrong. */
#define FAILS(call, status, part) expect_failure(call, status, part, #call, __LINE__)
#define REFUSED(call, part) FAILS(call, PHONEBIT_ERROR_INPUT, part)

#define GOLDEN PHONEBIT_SOURCE_DIR "/tests/golden/v1/"
static const char* const classifier = GOLDEN "tiny_classifier.pbit";

static inline int has_opencl(void) {
  int32_t count = 0;
  phonebit_device_info info = PHONEBIT_INIT(phonebit_device_info);
  if (phonebit_device_count(&count) != PHONEBIT_OK) return 0;
  return phonebit_device_get(count - 1, &info) == PHONEBIT_OK && info.kind != PHONEBIT_DEVICE_CPU;
}

/* Two threads of the CPU. The caller destroys it. */
static inline phonebit_options* cpu_options(void) {
  phonebit_options* options = NULL;
  OK(phonebit_options_create(&options));
  OK(phonebit_options_set_device(options, "cpu"));
  OK(phonebit_options_set_threads(options, 2));
  return options;
}

static inline phonebit_network* load(const char* path, const phonebit_options* options) {
  phonebit_network* network = NULL;
  OK(phonebit_network_load_path(path, options, &network));
  if (network == NULL) exit(1); /* nothing below would mean anything */
  return network;
}

/* The caller frees it. */
static inline char* read_file(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) abort();
  *bytes = (size_t)ftell(file);
  rewind(file);
  char* const content = (char*)malloc(*bytes);
  if (content == NULL || fread(content, 1, *bytes, file) != *bytes) abort();
  fclose(file);
  return content;
}

static inline int finish(void) {
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

#endif
