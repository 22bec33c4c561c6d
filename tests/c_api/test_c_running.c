/* Running networks by the C interface: inferences, jobs, images, profiles, two processors; with the errors that
 * it reports.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "phonebit/phonebit_c.h"

enum { kLevels = 1 << 20 };
static const char* const planned = GOLDEN "planned_classifier.pbit";
static const char* const float_valued = GOLDEN "binary_conv_threshold_1_1_pad0.pbit";

/* Input and output of the classifier, large enough for batches of 3. */
static uint8_t levels[kLevels];
static float scores[1024], expected[1024];
static phonebit_input in;
static phonebit_output out;

static void prepare_buffers(const phonebit_network* network, int32_t batch) {
  phonebit_tensor_info info = PHONEBIT_INIT(phonebit_tensor_info);
  OK(phonebit_network_input_get(network, 0, &info));
  in = (phonebit_input){levels, (size_t)info.bytes * (size_t)batch};
  OK(phonebit_network_output_get(network, 0, &info));
  out = (phonebit_output){scores, (size_t)info.bytes * (size_t)batch};
  EXPECT(in.bytes <= sizeof levels && out.bytes <= sizeof scores);
  for (size_t i = 0; i < in.bytes; ++i) levels[i] = (uint8_t)(i * 37 + i / 251);
  memset(scores, 0, sizeof scores);
}

static void test_forward(phonebit_network* network) {
  prepare_buffers(network, 1);
  OK(phonebit_network_forward(network, &in, 1, &out, 1, 1));
  memcpy(expected, scores, out.bytes);
  float zeros[1024] = {0};
  EXPECT(memcmp(scores, zeros, out.bytes) != 0);
  prepare_buffers(network, 3);
  OK(phonebit_network_forward(network, &in, 1, &out, 1, 3));
  EXPECT(memcmp(scores, expected, out.bytes / 3) == 0); /* the same first image */

  memset(scores, 0, sizeof scores);
  REFUSED(phonebit_network_forward(NULL, &in, 1, &out, 1, 3), "network: got NULL");
  REFUSED(phonebit_network_forward(network, NULL, 1, &out, 1, 3), "inputs: got NULL");
  REFUSED(phonebit_network_forward(network, &in, 0, &out, 1, 3), "got 0 buffers");
  REFUSED(phonebit_network_forward(network, &in, -1, &out, 1, 3), "got -1 of them");
  REFUSED(phonebit_network_forward(network, &in, 1, &out, 1, 0), "batch: got 0");
  REFUSED(phonebit_network_forward(network, &in, 1, &out, 1, 2), "2 images");
  phonebit_output odd = {(char*)scores + 1, out.bytes};
  REFUSED(phonebit_network_forward(network, &in, 1, &odd, 1, 3), "aligned");
  phonebit_input nothing = {NULL, in.bytes};
  REFUSED(phonebit_network_forward(network, &nothing, 1, &out, 1, 3), "null");
  phonebit_output shared = {levels + 4, out.bytes};
  REFUSED(phonebit_network_forward(network, &in, 1, &shared, 1, 3), "output 0 overlaps input 0");
  EXPECT(memcmp(scores, zeros, sizeof zeros) == 0);

  /* Lists of other lengths than the network's are not read: these end after one element. */
  REFUSED(phonebit_network_forward(network, &in, INT32_MAX, &out, 1, 3),
          "inputs: got 2147483647 buffers, expected 1");
  REFUSED(phonebit_network_forward(network, &in, 1, &out, INT32_MAX, 3),
          "outputs: got 2147483647 buffers, expected 1");
  REFUSED(phonebit_network_forward_async(network, &in, INT32_MAX, &out, 1, 3, NULL, NULL, NULL),
          "inputs: got 2147483647 buffers");
  REFUSED(phonebit_network_forward_async(network, &in, 1, &out, 2, 3, NULL, NULL, NULL),
          "outputs: got 2 buffers");
  double times[256];
  int32_t layers = 0;
  OK(phonebit_network_layer_count(network, &layers));
  REFUSED(phonebit_network_profile(network, &in, INT32_MAX, 3, 1, times, layers),
          "inputs: got 2147483647 buffers");
}

static void test_profiles(phonebit_network* network) {
  int32_t count = 0;
  double times[256];
  OK(phonebit_network_layer_count(network, &count));
  prepare_buffers(network, 1);
  REFUSED(phonebit_network_last_profile(network, times, count - 1), "milliseconds: got room");
  OK(phonebit_network_forward(network, &in, 1, &out, 1, 1));
  OK(phonebit_network_last_profile(network, times, count));
  for (int32_t i = 0; i < count; ++i) EXPECT(times[i] >= 0.0 && times[i] < 60000.0);
  OK(phonebit_network_profile(network, &in, 1, 1, 2, times, count));
  for (int32_t i = 0; i < count; ++i) EXPECT(times[i] >= 0.0 && times[i] < 60000.0);
  REFUSED(phonebit_network_profile(network, &in, 1, 1, 0, times, count), "repeats: got 0");
  REFUSED(phonebit_network_profile(network, &in, 1, 1, 1, NULL, count), "milliseconds: got NULL");

  phonebit_options* const options = cpu_options();
  phonebit_network* const plain = load(classifier, options);
  OK(phonebit_network_forward(plain, &in, 1, &out, 1, 1));
  REFUSED(phonebit_network_last_profile(plain, times, count), "profiling");
  phonebit_network_destroy(plain);
  phonebit_options_destroy(options);
}

/* A callback that waits until `gate` is open. */
struct Seen {
  atomic_int calls, gate;
  phonebit_status status;
  char error[256];
  phonebit_network* again; /* starts another inference on it, once */
  phonebit_status again_status;
};

static void note(void* user, phonebit_status status, const char* error) {
  struct Seen* const seen = user;
  seen->status = status;
  phonebit_job_wait(NULL, 0); /* fails, which must not change `error` */
  snprintf(seen->error, sizeof seen->error, "%s", error);
  if (seen->again != NULL)
    seen->again_status = phonebit_network_forward_async(seen->again, &in, 1, &out, 1, 1, NULL, NULL, NULL);
  atomic_fetch_add(&seen->calls, 1);
  const struct timespec pause = {0, 1000000};
  while (!atomic_load(&seen->gate)) nanosleep(&pause, NULL);
}

static void test_jobs(phonebit_network* network) {
  prepare_buffers(network, 1);
  struct Seen seen = {.gate = 1};
  phonebit_job* job = NULL;
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, note, &seen, &job));
  OK(phonebit_job_wait(job, -1));
  EXPECT(atomic_load(&seen.calls) == 1 && seen.status == PHONEBIT_OK && seen.error[0] == 0);
  EXPECT(memcmp(scores, expected, out.bytes) == 0);
  REFUSED(phonebit_job_wait(job, -2), "timeout_ms: got -2");
  REFUSED(phonebit_job_wait(NULL, 0), "job: got NULL");
  phonebit_job_destroy(job);
  phonebit_job_destroy(NULL);

  /* Errors in the buffers are found before anything is queued. */
  job = NULL;
  REFUSED(phonebit_network_forward_async(network, &in, 1, &out, 1, 2, note, &seen, &job), "2 images");
  REFUSED(phonebit_network_forward_async(network, &in, 1, &out, 1, 0, note, &seen, &job), "batch: got 0");
  REFUSED(phonebit_network_forward_async(network, NULL, 1, &out, 1, 1, note, &seen, &job),
          "inputs: got NULL");
  const phonebit_input overlapping = {scores, in.bytes};
  REFUSED(phonebit_network_forward_async(network, &overlapping, 1, &out, 1, 1, note, &seen, &job),
          "output 0 overlaps input 0");
  const phonebit_output odd = {(char*)scores + 1, out.bytes};
  REFUSED(phonebit_network_forward_async(network, &in, 1, &odd, 1, 1, note, &seen, &job), "4-byte aligned");
  EXPECT(job == NULL && atomic_load(&seen.calls) == 1);
}

/* In a forked child: the queue's thread stayed with the parent, and nobody waits for it. */
static int child_is_told(phonebit_network* network, phonebit_job* job) {
  failures = 0;
  alarm(10);
  FAILS(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, NULL, NULL, NULL), PHONEBIT_ERROR_DEVICE,
        "load the network again");
  FAILS(phonebit_job_wait(job, -1), PHONEBIT_ERROR_DEVICE, "forked from");
  OK(phonebit_network_forward(network, &in, 1, &out, 1, 1));
  OK(phonebit_network_cancel(network));
  phonebit_job_destroy(job);
  phonebit_network_destroy(network);
  return failures;
}

static void test_fork(void) {
  phonebit_options* const options = cpu_options();
  phonebit_network* const network = load(classifier, options);
  prepare_buffers(network, 1);
  phonebit_job* job = NULL;
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, NULL, NULL, &job));
  OK(phonebit_job_wait(job, -1));
  const pid_t child = fork();
  if (child == 0) _exit(child_is_told(network, job));
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, NULL, NULL, NULL));
  phonebit_job_destroy(job);
  phonebit_network_destroy(network);
  phonebit_options_destroy(options);
}

static void test_cancel(phonebit_network* network) {
  prepare_buffers(network, 1);
  struct Seen first = {.gate = 0}, second = {.gate = 1};
  phonebit_job *running = NULL, *waiting = NULL, *later = NULL;
  REFUSED(phonebit_network_cancel(NULL), "network: got NULL");
  OK(phonebit_network_cancel(network)); /* nothing runs: no effect */
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, note, &first, &running));
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, note, &second, &waiting));
  while (atomic_load(&first.calls) == 0) EXPECT(phonebit_job_wait(running, 1) == PHONEBIT_PENDING);
  memset(scores, 0, sizeof scores);
  OK(phonebit_network_cancel(network));
  EXPECT(phonebit_job_wait(waiting, 0) == PHONEBIT_PENDING);
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, NULL, NULL, &later));
  atomic_store(&first.gate, 1);
  OK(phonebit_job_wait(running, -1)); /* its inference was over before */
  FAILS(phonebit_job_wait(waiting, -1), PHONEBIT_CANCELLED, "cancelled");
  EXPECT(second.status == PHONEBIT_CANCELLED);
  OK(phonebit_job_wait(later, -1)); /* asked for afterwards */
  EXPECT(memcmp(scores, expected, out.bytes) == 0);
  phonebit_job_destroy(running);
  phonebit_job_destroy(waiting);
  phonebit_job_destroy(later);
}

/* Which numbers levels stand for, only the file or the caller knows. */
static void test_image_without_rule(const phonebit_options* options) {
  phonebit_network* const network = load(float_valued, options);
  phonebit_tensor_info info = PHONEBIT_INIT(phonebit_tensor_info);
  OK(phonebit_network_input_get(network, 0, &info));
  phonebit_picture source = PHONEBIT_INIT(phonebit_picture);
  source.format = PHONEBIT_PICTURE_GRAY;
  source.width = source.height = 8;
  source.planes[0] = levels;
  void* const image = malloc(info.bytes);
  REFUSED(phonebit_network_prepare_picture(network, 0, &source, NULL, image, info.bytes), "give a rule");
  free(image);
  phonebit_network_destroy(network);
}

/* Destroying a network cancels and awaits its jobs, takes no new ones, and leaves the handles of jobs alive.
 */
static void test_destroy_with_jobs(const phonebit_options* options) {
  phonebit_network* const network = load(classifier, options);
  prepare_buffers(network, 1);
  struct Seen first = {.gate = 0}, last = {.gate = 1};
  phonebit_job* job = NULL;
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, note, &first, NULL));
  while (atomic_load(&first.calls) == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
  last.again = network;
  OK(phonebit_network_forward_async(network, &in, 1, &out, 1, 1, note, &last, &job));
  OK(phonebit_network_cancel(network));
  atomic_store(&first.gate, 1);
  phonebit_network_destroy(network);
  EXPECT(atomic_load(&last.calls) == 1 && last.status == PHONEBIT_CANCELLED);
  EXPECT(last.again_status == PHONEBIT_OK || last.again_status == PHONEBIT_CANCELLED);
  FAILS(phonebit_job_wait(job, 0), PHONEBIT_CANCELLED, "cancelled");
  phonebit_job_destroy(job);
}

static void test_images(phonebit_network* network) {
  phonebit_tensor_info info = PHONEBIT_INIT(phonebit_tensor_info);
  OK(phonebit_network_input_get(network, 0, &info));
  phonebit_preprocessing rule = PHONEBIT_INIT(phonebit_preprocessing);
  REFUSED(phonebit_network_preprocessing(network, 1, &rule), "number of inputs");
  OK(phonebit_network_preprocessing(network, 0, &rule));
  const int has_rule = rule.color_order != PHONEBIT_COLOR_NONE;
  phonebit_picture source = PHONEBIT_INIT(phonebit_picture);
  source.format = PHONEBIT_PICTURE_GRAY;
  source.width = info.width;
  source.height = info.height;
  source.planes[0] = levels;
  uint8_t* const image = malloc(info.bytes);
  if (!has_rule) { /* levels are levels */
    OK(phonebit_network_prepare_picture(network, 0, &source, NULL, image, info.bytes));
    for (size_t i = 0; i < info.bytes; ++i) EXPECT(image[i] == levels[i / (size_t)info.channels]);
  }
  rule.color_order = info.channels == 1 ? PHONEBIT_COLOR_GRAY : PHONEBIT_COLOR_RGB;
  rule.resize = PHONEBIT_RESIZE_STRETCH;
  rule.interpolation = PHONEBIT_INTERPOLATION_NEAREST;
  rule.high = 255.0;
  for (int i = 0; i < 4; ++i) rule.deviation[i] = 1.0;
  OK(phonebit_network_prepare_picture(network, 0, &source, &rule, image, info.bytes));
  for (size_t i = 0; i < info.bytes; ++i) EXPECT(image[i] == levels[i / (size_t)info.channels]);
  source.format = 8;
  REFUSED(phonebit_network_prepare_picture(network, 0, &source, &rule, image, info.bytes), "format: got 8");
  source.format = PHONEBIT_PICTURE_GRAY;
  source.planes[0] = NULL;
  REFUSED(phonebit_network_prepare_picture(network, 0, &source, &rule, image, info.bytes), "plane");
  source.planes[0] = levels;
  REFUSED(phonebit_network_prepare_picture(network, 0, &source, &rule, image, info.bytes - 1), "bytes");
  rule.color_order = 99;
  REFUSED(phonebit_network_prepare_picture(network, 0, &source, &rule, image, info.bytes),
          "color_order: got 99");
  REFUSED(phonebit_network_prepare_picture(network, 0, NULL, NULL, image, info.bytes), "image: got NULL");
  free(image);
}

static void test_measuring_on_cpu(phonebit_network* network) {
  const phonebit_part part = {0, 1, 0, 1};
  int32_t count = 0;
  phonebit_layer_times times = PHONEBIT_INIT(phonebit_layer_times);
  REFUSED(phonebit_network_measure_layer(network, 0, NULL, &part, 1, &times), "'gpu+cpu'");
  REFUSED(phonebit_network_measure_layer(network, 1000, NULL, &part, 1, &times), "number of layers");
  REFUSED(phonebit_network_dispatch(network, 0, &part, NULL, 0, &count), "'gpu+cpu'");
  REFUSED(phonebit_network_dispatch(network, 0, NULL, NULL, 0, &count), "gpu: got NULL");
  phonebit_options* const options = cpu_options();
  REFUSED(phonebit_self_test(options, 0, NULL, NULL), "is no GPU");
  phonebit_options_destroy(options);
}

/* Structures of this and of an older, smaller size in an array. */
static void test_dispatches(phonebit_network* network, const phonebit_part* part) {
  phonebit_dispatch launches[2] = {PHONEBIT_INIT(phonebit_dispatch), PHONEBIT_INIT(phonebit_dispatch)};
  int32_t count = 0;
  OK(phonebit_network_dispatch(network, 0, part, launches, 1, &count));
  EXPECT(count >= 1 && launches[0].global[0] > 0 && strlen(launches[0].kernel) > 0);
  EXPECT(launches[1].kernel == NULL);
  launches[0].struct_size = 0;
  REFUSED(phonebit_network_dispatch(network, 0, part, launches, 1, &count), "struct_size is 0");
}

static void test_both_processors(const char* cache) {
  phonebit_options* options = NULL;
  OK(phonebit_options_create(&options));
  OK(phonebit_options_set_device(options, "gpu+cpu"));
  OK(phonebit_options_set_cache_directory(options, cache));
  phonebit_network* const network = load(planned, options);
  phonebit_coexec_info coexec = PHONEBIT_INIT(phonebit_coexec_info);
  OK(phonebit_network_coexec(network, &coexec));
  EXPECT(coexec.sharing != PHONEBIT_SHARING_AUTOMATIC && !coexec.is_on_cpu_alone);
  const char* key = "";
  OK(phonebit_network_plan_key(network, &key));
  EXPECT(strlen(key) > 0);
  int32_t count = 0, layers = 0;
  OK(phonebit_network_layer_count(network, &layers));
  phonebit_planned_part parts[64];
  OK(phonebit_network_plan(network, parts, 64, &count));
  EXPECT(count >= layers && count <= 64);
  const phonebit_part whole = parts[0].part;
  phonebit_layer_times times = PHONEBIT_INIT(phonebit_layer_times);
  OK(phonebit_network_measure_layer(network, 0, NULL, &whole, 1, &times));
  EXPECT(times.total_us > 0.0 && times.cpu_us == 0.0);
  REFUSED(phonebit_network_measure_layer(network, 0, NULL, &whole, 0, &times), "repeats: got 0");
  test_dispatches(network, &whole);
  phonebit_network_destroy(network);
  phonebit_options_destroy(options);
}

int main(void) {
  phonebit_options* const options = cpu_options();
  OK(phonebit_options_set_profiling(options, 1));
  phonebit_network* const network = load(classifier, options);
  test_forward(network);
  test_profiles(network);
  test_jobs(network);
  test_fork();
  test_cancel(network);
  test_images(network);
  test_image_without_rule(options);
  test_measuring_on_cpu(network);
  phonebit_network_destroy(network);
  test_destroy_with_jobs(options);
  phonebit_options_destroy(options);
  if (has_opencl())
    test_both_processors(getenv("PHONEBIT_CACHE_DIR"));
  else
    printf("both processors: skipped, %s\n", phonebit_opencl_error());
  return finish();
}
