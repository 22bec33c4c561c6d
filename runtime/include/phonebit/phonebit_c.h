/* PhoneBit's stable C interface: load a .pbit file, run it on the CPU, on an OpenCL device, or on both.
 *
 *   phonebit_network* network = NULL;
 *   if (phonebit_network_load_path("model.pbit", NULL, &network) != PHONEBIT_OK)
 *     puts(phonebit_last_error());
 *   phonebit_input in = {pixels, pixel_bytes};
 *   phonebit_output out = {scores, score_bytes};
 *   phonebit_network_forward(network, &in, 1, &out, 1, 1);
 *   phonebit_network_destroy(network);
 *
 * Rules that hold for every function here:
 * - It returns a status. After any other than PHONEBIT_OK, phonebit_last_error() says in words what failed,
 * where, what was found, what was expected and what to do; every object stays usable and result parameters
 * are untouched. No exception leaves the library, and it never aborts.
 * - Handles are opaque. What a _create or _load function gives is the caller's, and is destroyed by its
 * _destroy, which takes NULL. Destroying an object while another thread uses it is the only misuse that
 * cannot be reported.
 * - A null handle or result pointer, or an index out of range, is PHONEBIT_ERROR_INPUT.
 * - Strings given are UTF-8, end in a zero byte, and are copied. Strings received belong to the object that
 * gave them and live as long as it does, unless the function says otherwise.
 * - Structures that begin with `struct_size` may get more fields at their end in later versions: the caller
 * sets it to sizeof, and the library reads or fills no more than that. PHONEBIT_INIT(type) makes a zeroed
 * structure with its size set; 0 and absurd sizes are PHONEBIT_ERROR_INPUT. Other structures never change.
 * - Thread-safety: "any thread" means that calls on the same object are safe from several threads at once.
 * Others need one thread at a time for an object; different objects never disturb each other.
 *
 * The header-only C++17 wrapper is phonebit.h; layers chained by hand are in phonebit_layers_c.h.
 */
#ifndef PHONEBIT_C_H
#define PHONEBIT_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(PHONEBIT_BUILDS_LIBRARY)
#define PHONEBIT_API __declspec(dllexport)
#elif defined(_WIN32)
#define PHONEBIT_API
#else
#define PHONEBIT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
template <class Type>
inline Type phonebit_init() {
  Type structure = {};
  structure.struct_size = static_cast<uint32_t>(sizeof(Type));
  return structure;
}
#define PHONEBIT_INIT(type) (phonebit_init<type>())
extern "C" {
#else
#define PHONEBIT_INIT(type) ((type){.struct_size = (uint32_t)sizeof(type)})
#endif

/* ---- Version, status, errors ---- */

/* Grows when functions, fields or constants are added. A program built for version N runs with every library
 * of version N or later; nothing is ever removed or given another meaning. */
#define PHONEBIT_C_API_VERSION 1

/* Of the library in use; any thread. */
PHONEBIT_API int32_t phonebit_c_api_version(void);
/* "0.1.0", static; any thread. */
PHONEBIT_API const char* phonebit_version(void);

/* An int32_t everywhere, so that its size is part of the interface. */
typedef int32_t phonebit_status;
enum {
  PHONEBIT_OK = 0,
  PHONEBIT_ERROR_FORMAT = 1, /* the file is damaged, of an unknown version, or beyond this engine's limits */
  PHONEBIT_ERROR_INPUT = 2,  /* an argument: a path, an option, a buffer's size, a NaN */
  PHONEBIT_ERROR_DEVICE = 3, /* a processor, driver, memory or sensor that this machine does not have, or that
                                failed; a part of the engine that this library was built without */
  PHONEBIT_ERROR_INTERNAL = 4, /* a defect of PhoneBit */
  PHONEBIT_CANCELLED = 5,      /* phonebit_network_cancel was called meanwhile; outputs are undefined */
  PHONEBIT_PENDING = 6,        /* the job is not done yet */
};

/* "ok", "format", ...; static; "unknown" for other numbers. Any thread. */
PHONEBIT_API const char* phonebit_status_name(phonebit_status status);
/* Text of the calling thread's last failure; "" before the first. Valid until the next call of that thread
 * fails. */
PHONEBIT_API const char* phonebit_last_error(void);

/* ---- Processors ---- */

typedef int32_t phonebit_device_kind;
enum {
  PHONEBIT_DEVICE_CPU = 0,
  PHONEBIT_DEVICE_GPU = 1,
  PHONEBIT_DEVICE_OTHER = 2 /* OpenCL on something else */
};

typedef struct phonebit_device_info {
  uint32_t struct_size;
  phonebit_device_kind kind;
  const char* name;         /* what phonebit_options_set_device takes: "cpu:neon", "gpu:0"; static */
  const char* description;  /* what its driver calls an OpenCL device: "Mali-G610"; features of a CPU's
                               instruction set */
  const char* driver;       /* version of the driver; "" of a CPU */
  int32_t is_supported;     /* whether this machine has that instruction set; OpenCL devices are always 1 */
  int32_t compute_units;    /* of a CPU: processors this process may use */
  int32_t clock_mhz;        /* 0: unknown */
  uint64_t memory_bytes;    /* global memory of an OpenCL device; 0 of a CPU */
  uint64_t local_bytes;     /* of an OpenCL work-group; 0 of a CPU */
  const char* platform;     /* "ARM Platform"; "" of a CPU */
  const char* version;      /* "OpenCL 3.0 v1.r38"; "" of a CPU */
  const char* vendor;       /* as tuning tables call it: "arm"; "" of a CPU */
  const char* family;       /* likewise: "valhall"; "" of a CPU */
  const char* capabilities; /* separated by blanks: "images half svm_fine"; "" of a CPU */
} phonebit_device_info;

/* Instruction sets of this build, best first, then OpenCL devices, GPUs first. The first call loads OpenCL.
 * Any thread. */
PHONEBIT_API phonebit_status phonebit_device_count(int32_t* count);
PHONEBIT_API phonebit_status phonebit_device_get(int32_t index, phonebit_device_info* info);
/* Why there is no OpenCL device, or "". Valid until the calling thread's next call. Any thread. */
PHONEBIT_API const char* phonebit_opencl_error(void);
/* Makes the engine load this library instead of the system's. Before anything else uses OpenCL; afterwards it
 * has no effect. Any thread. */
PHONEBIT_API phonebit_status phonebit_use_opencl_library(const char* path);

typedef struct phonebit_core_info {
  uint32_t struct_size;
  int32_t index;     /* the system's number of the processor */
  int32_t max_mhz;   /* by cpufreq; 0: unknown */
  int32_t capacity;  /* relative, 1024 of the strongest, by the system or from max_mhz; 0: unknown */
  int32_t is_big;    /* whether PHONEBIT_CORES_BIG uses it */
  int32_t is_little; /* whether PHONEBIT_CORES_LITTLE uses it; both where all are alike */
} phonebit_core_info;

/* Processors that are online, as /sys/devices/system/cpu tells. Any thread. */
PHONEBIT_API phonebit_status phonebit_core_count(int32_t* count);
PHONEBIT_API phonebit_status phonebit_core_get(int32_t index, phonebit_core_info* info);

/* ---- Options ---- */

typedef struct phonebit_options phonebit_options;

/* Which processors the threads of a network run on. */
typedef int32_t phonebit_cores;
enum {
  PHONEBIT_CORES_ANY = 0,    /* the system decides */
  PHONEBIT_CORES_BIG = 1,    /* the clusters of highest capacity; everything where all are alike */
  PHONEBIT_CORES_LITTLE = 2, /* the cluster of lowest capacity */
};

typedef int32_t phonebit_hint;
enum {
  PHONEBIT_HINT_NONE = 0,
  PHONEBIT_HINT_PERFORMANCE =
      1, /* workers wait awake; Android's performance hint session, where there is one (API 33) */
  PHONEBIT_HINT_POWER = 2, /* workers sleep at once; OpenCL's low-power hint where the driver has it */
};

typedef int32_t phonebit_precision;
enum { PHONEBIT_PRECISION_EXACT = 0, PHONEBIT_PRECISION_F16 = 1, PHONEBIT_PRECISION_FAST = 2 };

typedef int32_t phonebit_sharing;
enum {
  PHONEBIT_SHARING_AUTOMATIC = 0,
  PHONEBIT_SHARING_COPY = 1,
  PHONEBIT_SHARING_MAP = 2,
  PHONEBIT_SHARING_SVM = 3
};

typedef int32_t phonebit_synchronization;
enum {
  PHONEBIT_SYNCHRONIZATION_AUTOMATIC = 0,
  PHONEBIT_SYNCHRONIZATION_EVENTS = 1,
  PHONEBIT_SYNCHRONIZATION_USER_EVENTS = 2,
  PHONEBIT_SYNCHRONIZATION_POLLING = 3,
};

typedef int32_t phonebit_processor;
enum { PHONEBIT_PROCESSOR_CPU = 0, PHONEBIT_PROCESSOR_GPU = 1 };

/* A rectangle of a layer's output: rows [row_begin, row_end), channels [channel_begin, channel_end), all
 * columns. */
typedef struct phonebit_part {
  int32_t row_begin, row_end, channel_begin, channel_end;
} phonebit_part;

/* What one processor computes of one layer (docs/coexecution.md). */
typedef struct phonebit_planned_part {
  int32_t stage; /* from 0 without gaps */
  phonebit_processor processor;
  int32_t layer;
  phonebit_part part;
} phonebit_planned_part;

/* An options object holds defaults until they are set. Networks copy what they need. One thread at a time. */
PHONEBIT_API phonebit_status phonebit_options_create(phonebit_options** options);
PHONEBIT_API void phonebit_options_destroy(phonebit_options* options);
/* "auto" (default: the first OpenCL device that is a GPU, else the CPU), "cpu", "cpu:neon", "gpu", "gpu:1",
 * "gpu+cpu", "gpu:1+cpu:neon". Checked when a network is loaded. */
PHONEBIT_API phonebit_status phonebit_options_set_device(phonebit_options* options, const char* device);
/* Of an inference, the caller included; 0 (default): one for each processor that may be used. */
PHONEBIT_API phonebit_status phonebit_options_set_threads(phonebit_options* options, int32_t threads);
PHONEBIT_API phonebit_status phonebit_options_set_cores(phonebit_options* options, phonebit_cores cores);
/* Explicit processors, the system's numbers, in place of phonebit_cores. The calling thread of an inference
 * is put there for its duration, too. */
PHONEBIT_API phonebit_status phonebit_options_set_core_list(phonebit_options* options, const int32_t* cores,
                                                            int32_t count);
PHONEBIT_API phonebit_status phonebit_options_set_hint(phonebit_options* options, phonebit_hint hint);
PHONEBIT_API phonebit_status phonebit_options_set_precision(phonebit_options* options,
                                                            phonebit_precision precision);
/* Folder for GPU program binaries and self-test results; an Android app passes its getCacheDir(). */
PHONEBIT_API phonebit_status phonebit_options_set_cache_directory(phonebit_options* options,
                                                                  const char* path);
/* "gpu+cpu": who computes what, in place of the file's own plan. count 0: everything on the GPU. */
PHONEBIT_API phonebit_status phonebit_options_set_plan(phonebit_options* options,
                                                       const phonebit_planned_part* parts, int32_t count);
PHONEBIT_API phonebit_status phonebit_options_set_sharing(phonebit_options* options,
                                                          phonebit_sharing sharing);
PHONEBIT_API phonebit_status phonebit_options_set_synchronization(phonebit_options* options,
                                                                  phonebit_synchronization synchronization);
/* "gpu+cpu": whether the first inferences take turns between the file's plan and either processor alone, and the
 * fastest runs all others; default 1. Not while profiling; a plan of phonebit_options_set_plan is followed. In
 * exact precision all give the same bits, below it each those of its own types. Two at a time take memory; the
 * choice is kept in the cache directory. */
PHONEBIT_API phonebit_status phonebit_options_set_trial(phonebit_options* options, int32_t is_on);
/* Longest wait of one processor for the other by polling, before the network goes on without polling; default
 * 2000. */
PHONEBIT_API phonebit_status phonebit_options_set_sync_limit(phonebit_options* options, int32_t limit_ms);
/* Whether inferences replay recorded kernels where the device has cl_khr_command_buffer or
 * cl_qcom_recordable_queues; default 1. */
PHONEBIT_API phonebit_status phonebit_options_set_command_buffer(phonebit_options* options, int32_t is_on);
/* Lines of a tuning table (bnn_kernels/README.md) that go before the built-in ones. */
PHONEBIT_API phonebit_status phonebit_options_set_tuning(phonebit_options* options, const char* lines);
/* Whether each inference also takes the time of each layer: phonebit_network_last_profile. Costs some
 * time. */
PHONEBIT_API phonebit_status phonebit_options_set_profiling(phonebit_options* options, int32_t is_on);
/* Largest sum of activations, scratch and packed weights that a file may ask for, largest sum of an image's
 * inputs and outputs, and largest file; 0 (default): half of this machine's memory, at most 4 GiB. */
PHONEBIT_API phonebit_status phonebit_options_set_max_memory(phonebit_options* options, uint64_t bytes);
/* Most operations of one image that a file may ask for: multiply-adds of values, xor-popcounts of 32-bit
 * words, reads of 16 channels by pooling windows. 0 (default): 10^12 for each processor that may be used. */
PHONEBIT_API phonebit_status phonebit_options_set_max_work(phonebit_options* options, double operations);
/* Whether a file's bytes are used where they are, without a copy: a mapping that is shared with the page
 * cache, or the caller's memory (copied where it does not start at a multiple of 64). They must then stay
 * unchanged until the network is destroyed (replacing a file by renaming is fine): results are otherwise
 * undefined, and a file that is cut short ends the process with SIGBUS. Default 0. */
PHONEBIT_API phonebit_status phonebit_options_set_in_place(phonebit_options* options, int32_t is_on);
/* Whether f32 inputs take levels of images instead, where the file has a rule for them
 * (phonebit_network_preprocessing): the type of such an input is then PHONEBIT_TYPE_U8, a byte per element, and
 * phonebit_network_prepare_picture writes levels. A GPU gets the bytes and computes the values itself. The bits
 * of all results are those of values that phonebit_network_prepare_picture writes. Default 0. */
PHONEBIT_API phonebit_status phonebit_options_set_levels(phonebit_options* options, int32_t is_on);
/* The caller's cl_context, cl_device_id and in-order cl_command_queue (may be NULL), in place of a device
 * name; retained. */
PHONEBIT_API phonebit_status phonebit_options_set_opencl(phonebit_options* options, void* context,
                                                         void* device, void* queue);

/* ---- Networks ---- */

typedef struct phonebit_network phonebit_network;

/* Each blocks for the time of reading the file once and preparing it; on a GPU's first start also of
 * compiling and testing its kernels. options NULL: defaults. Any thread. Files and memory may change or
 * vanish afterwards, unless phonebit_options_set_in_place. */
PHONEBIT_API phonebit_status phonebit_network_load_path(const char* path, const phonebit_options* options,
                                                        phonebit_network** network);
/* Bytes of a file in memory. */
PHONEBIT_API phonebit_status phonebit_network_load_memory(const void* data, size_t bytes,
                                                          const phonebit_options* options,
                                                          phonebit_network** network);
/* `bytes` bytes from `offset` in an open file, as Android's AAsset_openFileDescriptor gives them (the asset
 * must be stored uncompressed); bytes 0: to the end. The descriptor may be closed afterwards. */
PHONEBIT_API phonebit_status phonebit_network_load_fd(int32_t fd, int64_t offset, int64_t bytes,
                                                      const phonebit_options* options,
                                                      phonebit_network** network);
/* Waits for its jobs, which are cancelled. */
PHONEBIT_API void phonebit_network_destroy(phonebit_network* network);

typedef int32_t phonebit_type;
enum {
  PHONEBIT_TYPE_BIT =
      0, /* -1 or +1: 32 channels in a u32 word, least significant bit first, 1 = +1, unused bits 0 */
  PHONEBIT_TYPE_U8 = 1,
  PHONEBIT_TYPE_F32 = 2,
};

/* An activation tensor: (height, width, channels), channels innermost, one image. */
typedef struct phonebit_tensor_info {
  uint32_t struct_size;
  phonebit_type type;
  const char* name;
  int32_t height, width, channels;
  uint64_t bytes; /* of one image in a buffer */
} phonebit_tensor_info;

/* One op of the file. */
typedef struct phonebit_layer_info {
  uint32_t struct_size;
  int32_t is_binary;     /* whether its multiply-accumulates are of -1/+1 by -1/+1 */
  const char* name;      /* the training framework's */
  const char* kind;      /* "binary_conv2d", ... */
  const char* kernel;    /* what runs it here */
  int64_t macs;          /* of one image */
  uint64_t weight_bytes; /* of all its constants in the file */
} phonebit_layer_info;

typedef struct phonebit_memory_info {
  uint32_t struct_size;
  uint64_t arena_bytes;       /* activations of one image */
  uint64_t lower_bound_bytes; /* the minimum that any placement of them needs */
  uint64_t scratch_bytes;
  uint64_t weight_bytes; /* as the kernels like them */
  uint64_t file_bytes;   /* a copy of the file, or shared where it is used in place */
} phonebit_memory_info;

/* How a network came up on an OpenCL device. */
typedef struct phonebit_startup_info {
  uint32_t struct_size;
  int32_t programs_built, programs_loaded, cache_entries_rejected, self_tests_run;
  double build_ms;
  int32_t uses_command_buffer;
} phonebit_startup_info;

/* What the numbers of an output mean (docs/detection.md has the formulas). The engine never applies it. */
typedef int32_t phonebit_head;
enum {
  PHONEBIT_HEAD_NONE = 0, /* the file says nothing of boxes for this output */
  PHONEBIT_HEAD_YOLOV2 = 1,
};

/* Size of a prior box, in cells of the output. */
typedef struct phonebit_anchor {
  float width, height;
} phonebit_anchor;

typedef struct phonebit_detection {
  uint32_t struct_size;
  phonebit_head head;
  int32_t anchor_count;
  const phonebit_anchor* anchors;
} phonebit_detection;

/* How a CPU and a GPU work together in a network on "gpu+cpu". */
typedef struct phonebit_coexec_info {
  uint32_t struct_size;
  phonebit_sharing sharing;
  phonebit_synchronization synchronization;
  int32_t
      is_on_cpu_alone; /* the GPU has failed, or the plan leaves it out, or the CPU won the auto-selection */
  int32_t is_on_gpu_alone; /* the GPU won the auto-selection */
  int32_t is_on_trial;     /* phonebit_options_set_trial: the fastest is not known yet */
  /* Milliseconds of an image, medians of the auto-selection; 0 before its end, and of what took no part. */
  double plan_ms, cpu_ms, gpu_ms;
} phonebit_coexec_info;

/* Facts of a network, fixed at load. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_input_count(const phonebit_network* network, int32_t* count);
PHONEBIT_API phonebit_status phonebit_network_input_get(const phonebit_network* network, int32_t index,
                                                        phonebit_tensor_info* info);
PHONEBIT_API phonebit_status phonebit_network_output_count(const phonebit_network* network, int32_t* count);
PHONEBIT_API phonebit_status phonebit_network_output_get(const phonebit_network* network, int32_t index,
                                                         phonebit_tensor_info* info);
PHONEBIT_API phonebit_status phonebit_network_layer_count(const phonebit_network* network, int32_t* count);
PHONEBIT_API phonebit_status phonebit_network_layer_get(const phonebit_network* network, int32_t index,
                                                        phonebit_layer_info* info);
/* Indices of inputs and outputs by name. */
PHONEBIT_API phonebit_status phonebit_network_find_input(const phonebit_network* network, const char* name,
                                                         int32_t* index);
PHONEBIT_API phonebit_status phonebit_network_find_output(const phonebit_network* network, const char* name,
                                                          int32_t* index);
/* Class names, one per channel of the first output, or one per class of its boxes; none where the file has none.
 */
PHONEBIT_API phonebit_status phonebit_network_label_count(const phonebit_network* network, int32_t* count);
PHONEBIT_API phonebit_status phonebit_network_label_get(const phonebit_network* network, int32_t index,
                                                        const char** label);
PHONEBIT_API phonebit_status phonebit_network_memory(const phonebit_network* network,
                                                     phonebit_memory_info* info);
PHONEBIT_API phonebit_status phonebit_network_startup(const phonebit_network* network,
                                                      phonebit_startup_info* info);
/* JSON or "". */
PHONEBIT_API phonebit_status phonebit_network_metadata(const phonebit_network* network, const char** json);
/* "cpu:neon", "gpu:0 Mali-G610", "gpu:0 Mali-G610 + cpu:neon". */
PHONEBIT_API phonebit_status phonebit_network_device(const phonebit_network* network, const char** device);
PHONEBIT_API phonebit_status phonebit_network_threads(const phonebit_network* network, int32_t* threads);
/* What plans for these two processors are kept under; "" on one processor. */
PHONEBIT_API phonebit_status phonebit_network_plan_key(const phonebit_network* network, const char** key);

/* head is PHONEBIT_HEAD_NONE where the file has none for this output. */
PHONEBIT_API phonebit_status phonebit_network_detection(const phonebit_network* network, int32_t output,
                                                        phonebit_detection* detection);
/* The plan in force: fills up to `capacity` of its parts and tells how many there are; none on one processor.
 * `parts` may be NULL when capacity is 0. */
PHONEBIT_API phonebit_status phonebit_network_plan(const phonebit_network* network,
                                                   phonebit_planned_part* parts, int32_t capacity,
                                                   int32_t* count);

/* As it is now. PHONEBIT_ERROR_INPUT on one processor. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_coexec(const phonebit_network* network,
                                                     phonebit_coexec_info* info);
/* Kernels that failed the self-test at load; a GPU that failed since. `index` may be any number below
 * `count`, and texts live until the network is destroyed. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_warning_count(phonebit_network* network, int32_t* count);
PHONEBIT_API phonebit_status phonebit_network_warning_get(phonebit_network* network, int32_t index,
                                                          const char** text);

/* ---- Running ---- */

/* The caller's memory: `batch` images of one tensor, one after the other, exactly batch * bytes of its info;
 * at a multiple of 4 unless u8. An output must not overlap another output or an input. f32 inputs must hold
 * neither NaN nor infinity. All of that is checked, and so are the numbers of buffers, before an output is
 * written. What cannot be checked: that the memory is there, and that its bytes are of the type that the tensor's
 * info names. */
typedef struct phonebit_input {
  const void* data;
  size_t bytes;
} phonebit_input;
typedef struct phonebit_output {
  void* data;
  size_t bytes;
} phonebit_output;

/* Runs `batch` images. Blocks; allocates nothing for small batches seen before. Calls on one network take
 * turns. Any thread. Errors in arguments are found before anything is computed. A child of fork() may use the
 * networks of its parent on the CPU; it gets PHONEBIT_ERROR_DEVICE where an inference ran during the fork, and on a
 * GPU, and loads the network again. */
PHONEBIT_API phonebit_status phonebit_network_forward(phonebit_network* network, const phonebit_input* inputs,
                                                      int32_t input_count, const phonebit_output* outputs,
                                                      int32_t output_count, int32_t batch);

/* An inference in the background. */
typedef struct phonebit_job phonebit_job;
/* Called from the network's own thread when an inference is done, failed or was cancelled; `error` says why, ""
 * after PHONEBIT_OK, and lives during the call. It may start further jobs, and must not wait for any, nor
 * destroy the network, nor throw. */
typedef void (*phonebit_done)(void* user, phonebit_status status, const char* error);

/* Returns at once; inferences of one network run in the order of their calls, in a thread that the first call
 * starts. While a GPU computes one, the next one's inputs and the last one's outputs are copied. Buffers must stay
 * until the job is done; the two arrays are copied. Wrong numbers, sizes and places of buffers are errors here,
 * before anything is queued; values that are not finite are the job's error.
 * `done` may be NULL. `job` may be NULL; else it must be destroyed, at any time; destroying it does not
 * cancel it. Any thread; allocates. PHONEBIT_CANCELLED while the network is being destroyed. */
PHONEBIT_API phonebit_status phonebit_network_forward_async(phonebit_network* network,
                                                            const phonebit_input* inputs, int32_t input_count,
                                                            const phonebit_output* outputs,
                                                            int32_t output_count, int32_t batch,
                                                            phonebit_done done, void* user,
                                                            phonebit_job** job);
/* The inference's status, or PHONEBIT_PENDING; it is done when its `done` has returned. Waits up to
 * `timeout_ms`: 0 polls, -1 waits for ever. The error text of a failed inference becomes this thread's
 * phonebit_last_error. Any thread, also after the network is destroyed. */
PHONEBIT_API phonebit_status phonebit_job_wait(phonebit_job* job, int32_t timeout_ms);
PHONEBIT_API void phonebit_job_destroy(phonebit_job* job);

/* Inferences that run or wait on this network return PHONEBIT_CANCELLED as soon as they can: the CPU stops
 * within a layer, a GPU finishes the layers that it was given. Later inferences are not concerned. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_cancel(phonebit_network* network);

/* Milliseconds of each layer, `count` of them (phonebit_network_layer_count): median of `repeats` after a
 * warm-up. Blocks; allocates. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_profile(phonebit_network* network, const phonebit_input* inputs,
                                                      int32_t input_count, int32_t batch, int32_t repeats,
                                                      double* milliseconds, int32_t count);
/* Milliseconds of each layer in the last inference; needs phonebit_options_set_profiling. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_last_profile(phonebit_network* network, double* milliseconds,
                                                           int32_t count);

/* ---- Images ---- */

typedef int32_t phonebit_picture_format;
enum {
  PHONEBIT_PICTURE_GRAY = 0,
  PHONEBIT_PICTURE_RGB = 1,
  PHONEBIT_PICTURE_RGBA = 2, /* alpha is ignored unless the network reads four channels */
  PHONEBIT_PICTURE_BGR = 3,
  PHONEBIT_PICTURE_BGRA = 4,
  PHONEBIT_PICTURE_NV21 = 5, /* planes: Y; V and U interleaved (Android's cameras) */
  PHONEBIT_PICTURE_NV12 = 6, /* planes: Y; U and V interleaved */
  PHONEBIT_PICTURE_I420 = 7, /* planes: Y; U; V */
};

/* How the levels of luma and chroma become red, green and blue. */
typedef int32_t phonebit_yuv;
enum {
  PHONEBIT_YUV_BT601_FULL = 0, /* JPEG and Android's camera frames */
  PHONEBIT_YUV_BT601_LIMITED = 1,
  PHONEBIT_YUV_BT709_LIMITED = 2,
};

/* The caller's image; nothing of it is kept. */
typedef struct phonebit_picture {
  uint32_t struct_size;
  phonebit_picture_format format;
  int32_t width, height;
  const uint8_t* planes[3];
  int32_t row_bytes[3];   /* 0: no gap between rows */
  int32_t pixel_bytes[3]; /* from one sample of a plane to the next; 0: the format's own (YUV_420_888 has
                             others) */
  int32_t crop_left, crop_top, crop_width, crop_height; /* what is looked at; crop_width 0: everything */
  int32_t rotation;    /* clockwise degrees that make the image upright: 0, 90, 180, 270; after cropping */
  int32_t is_mirrored; /* left and right are swapped after rotating (a front camera's preview) */
  phonebit_yuv yuv;
} phonebit_picture;

typedef int32_t phonebit_color_order;
enum {
  PHONEBIT_COLOR_NONE = 0, /* the file says nothing of images for this input */
  PHONEBIT_COLOR_GRAY = 1,
  PHONEBIT_COLOR_RGB = 2,
  PHONEBIT_COLOR_BGR = 3,
  PHONEBIT_COLOR_RGBA = 4,
};
typedef int32_t phonebit_resize;
enum { PHONEBIT_RESIZE_STRETCH = 0, PHONEBIT_RESIZE_SHORTER_SIDE = 1, PHONEBIT_RESIZE_LETTERBOX = 2 };
typedef int32_t phonebit_interpolation;
enum {
  PHONEBIT_INTERPOLATION_NEAREST = 0,
  PHONEBIT_INTERPOLATION_BILINEAR = 1,
  PHONEBIT_INTERPOLATION_BICUBIC = 2
};

/* What an image becomes before the network reads it (docs/preprocessing.md). */
typedef struct phonebit_preprocessing {
  uint32_t struct_size;
  phonebit_color_order color_order;
  phonebit_resize resize;
  int32_t resize_to;  /* pixels; PHONEBIT_RESIZE_SHORTER_SIDE */
  int32_t fill_level; /* 0..255; PHONEBIT_RESIZE_LETTERBOX */
  phonebit_interpolation interpolation;
  double low, high; /* what levels 0 and 255 are before mean and deviation */
  double mean[4], deviation[4];
} phonebit_preprocessing;

/* color_order is PHONEBIT_COLOR_NONE where the file has none for this input. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_preprocessing(const phonebit_network* network, int32_t input,
                                                            phonebit_preprocessing* rule);
/* Crops, turns, resizes and normalises an image as the file says (or as `rule` says, when it is not NULL)
 * into one image of the input, `bytes` long. Of a u8 input of which the file says nothing, levels stay
 * levels, resized as a whole. The same numbers as `phonebit run` makes of the same image. Any thread; may
 * allocate. */
PHONEBIT_API phonebit_status phonebit_network_prepare_picture(const phonebit_network* network, int32_t input,
                                                              const phonebit_picture* image,
                                                              const phonebit_preprocessing* rule, void* data,
                                                              size_t bytes);

/* ---- Energy ---- */

typedef struct phonebit_energy_source_info {
  uint32_t struct_size;
  int32_t is_counter;      /* counts energy; else tells power, which is sampled */
  const char* name;        /* "odpm", "battery", "rapl", "ina" */
  const char* description; /* of a source that is absent: why */
  int32_t is_available;
  double period_ms; /* pace at which it is worth reading */
} phonebit_energy_source_info;

/* Sources of this machine, and the kinds that are absent; looked for anew by each call of _count. The list
 * belongs to the calling thread, and its texts live until that thread's next call of _count. */
PHONEBIT_API phonebit_status phonebit_energy_source_count(int32_t* count);
PHONEBIT_API phonebit_status phonebit_energy_source_get(int32_t index, phonebit_energy_source_info* info);

typedef struct phonebit_energy_result {
  uint32_t struct_size;
  int32_t is_counter;
  const char* source; /* name; valid until the meter is destroyed */
  double window_s, energy_mj, mean_mw;
  double step_mj; /* largest energy between two readings that differ: the resolution; its share of energy_mj
                     is the uncertainty */
} phonebit_energy_result;

/* Reads a source in a thread of its own between start and stop. One thread at a time. */
typedef struct phonebit_energy_meter phonebit_energy_meter;
/* source NULL: the best one here. PHONEBIT_ERROR_DEVICE "not measured: no source", and what was looked for,
 * where there is none: nothing is ever guessed. */
PHONEBIT_API phonebit_status phonebit_energy_meter_create(const char* source, phonebit_energy_meter** meter);
PHONEBIT_API void phonebit_energy_meter_destroy(phonebit_energy_meter* meter);
PHONEBIT_API phonebit_status phonebit_energy_meter_start(phonebit_energy_meter* meter);
/* What flowed since start; the meter goes on. PHONEBIT_ERROR_DEVICE where the source moved less than twice.
 */
PHONEBIT_API phonebit_status phonebit_energy_meter_read(phonebit_energy_meter* meter,
                                                        phonebit_energy_result* result);
PHONEBIT_API phonebit_status phonebit_energy_meter_stop(phonebit_energy_meter* meter,
                                                        phonebit_energy_result* result);

/* ---- Measuring and testing the engine itself ---- */

/* One kernel variant, compared with the CPU backend on the options' OpenCL device. */
typedef void (*phonebit_tested)(void* user, const char* op, const char* kernel, int32_t is_passed,
                                const char* detail);
/* options NULL: the first OpenCL device. is_again: even those with a cached result. Blocks, up to minutes;
 * `tested`, which may be NULL and must not throw, is called at its end from this thread. PHONEBIT_OK even
 * where some fail: those are disabled. Any thread. */
PHONEBIT_API phonebit_status phonebit_self_test(const phonebit_options* options, int32_t is_again,
                                                phonebit_tested tested, void* user);

/* What a layer takes on two processors inside a network, in microseconds. */
typedef struct phonebit_layer_times {
  uint32_t struct_size;
  double total_us;       /* waiting and data transfer included */
  double cpu_us, gpu_us; /* the parts alone; 0: no part */
} phonebit_layer_times;

/* One kernel launch. */
typedef struct phonebit_dispatch {
  uint32_t struct_size;
  const char* kernel;
  const char* choice; /* the kernel with its parameters */
  uint64_t global[3], local[3];
} phonebit_dispatch;

/* For networks on "gpu+cpu": the minimum of up to `repeats` runs with these parts (NULL: that processor does
 * nothing). Blocks; allocates. Any thread. */
PHONEBIT_API phonebit_status phonebit_network_measure_layer(phonebit_network* network, int32_t layer,
                                                            const phonebit_part* cpu,
                                                            const phonebit_part* gpu, int32_t repeats,
                                                            phonebit_layer_times* times);
/* The launches by which the GPU would compute a part: fills up to `capacity` of them, each with the
 * struct_size of the first, and tells how many there are. Texts live until the next call of this function on
 * this network: one thread at a time. `dispatches` may be NULL when capacity is 0. */
PHONEBIT_API phonebit_status phonebit_network_dispatch(phonebit_network* network, int32_t layer,
                                                       const phonebit_part* gpu,
                                                       phonebit_dispatch* dispatches, int32_t capacity,
                                                       int32_t* count);

#ifdef __cplusplus
}
#endif

#endif /* PHONEBIT_C_H */
