/* PhoneBit's layers, chained by hand: for networks that no converter knows. A part of the stable C interface,
 * whose rules (phonebit_c.h) hold here, too.
 *
 *   phonebit_builder* builder = NULL;
 *   int32_t image, conv, pool;
 *   phonebit_builder_create("tiny", &builder);
 *   phonebit_builder_input(builder, "image", PHONEBIT_TYPE_U8, 32, 32, 3, &image);
 *   phonebit_builder_conv2d(builder, image, &conv_with_norm_and_sign, &conv);
 *   phonebit_builder_max_pool(builder, conv, &halving, &pool);
 *   ...
 *   phonebit_builder_output(builder, scores);
 *   phonebit_builder_network(builder, options, &network);
 *
 * Layers take tensors by their numbers and give the number of their output; numbers count from 1.
 * Convolution, batch normalisation and sign become one comparison of integers, which decides as the float32
 * arithmetic does. Everything that is given is copied. A call that fails leaves the builder as it was. A
 * builder is used by one thread at a time. The C++ wrapper is phonebit_layers.h.
 */
#ifndef PHONEBIT_LAYERS_C_H
#define PHONEBIT_LAYERS_C_H

#include "phonebit/activations.h"
#include "phonebit/phonebit_c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct phonebit_builder phonebit_builder;

/* `name` of the network, not empty. */
PHONEBIT_API phonebit_status phonebit_builder_create(const char* name, phonebit_builder** builder);
PHONEBIT_API void phonebit_builder_destroy(phonebit_builder* builder);

/* ---- What layers are made of ---- */

/* The caller's numbers; {NULL, 0}: none. Their count is compared with what the layer needs. */
typedef struct phonebit_floats {
  const float* data;
  size_t count;
} phonebit_floats;
typedef struct phonebit_words {
  const uint32_t* data;
  size_t count;
} phonebit_words;

/* The order of float32 operations of the framework that trained. */
typedef int32_t phonebit_norm_arithmetic;
enum {
  PHONEBIT_NORM_KERAS = 0, /* (v - mean) * (gamma / sqrt(variance + epsilon)) + beta, each rounded */
  PHONEBIT_NORM_TORCH = 1, /* v * scale + (beta - mean * scale), fused, with
                              scale = 1 / sqrt(variance + epsilon) * gamma */
};

/* Batch normalisation at inference: finite numbers, one for each channel. None: gamma 1, beta 0, mean 0,
 * variance 1. */
typedef struct phonebit_batch_norm {
  uint32_t struct_size;
  phonebit_norm_arithmetic arithmetic;
  phonebit_floats gamma, beta, mean, variance;
  float epsilon;
} phonebit_batch_norm;

typedef int32_t phonebit_output_kind;
enum {
  PHONEBIT_OUTPUT_VALUES = 0, /* float32 */
  PHONEBIT_OUTPUT_SIGNS = 1,  /* bits: v >= 0 is +1, else -1 */
};

/* What follows a layer's sum v, in this order: v * scale + bias, norm, + added, activation or sign. Zeroed:
 * nothing. */
typedef struct phonebit_epilogue {
  uint32_t struct_size;
  phonebit_output_kind output;
  phonebit_floats scale, bias;     /* one for each channel; none: 1, 0 */
  const phonebit_batch_norm* norm; /* NULL: none */
  int32_t added;                   /* number of a tensor of f32 and of the output's shape; 0: none */
  phonebit_activation activation;  /* none where signs are given */
  phonebit_floats slopes; /* of PHONEBIT_ACTIVATION_PRELU, for values below 0, one for each channel */
} phonebit_epilogue;

/* A sliding window. Zeroed strides and dilations are 1. */
typedef struct phonebit_window {
  uint32_t struct_size;
  int32_t kernel_height, kernel_width; /* of pools, both 0: the whole map */
  int32_t stride_height, stride_width;
  int32_t dilation_height, dilation_width;
  int32_t pad_top, pad_left, pad_bottom, pad_right; /* each less than the dilated kernel */
} phonebit_window;

/* What a layer multiplies by, [out_channels][kernel_height][kernel_width][in_channels / groups]: numbers, or
 * signs in words of 32 channels of one tap, least significant bit first, 1 = +1, unused bits 0. */
typedef struct phonebit_weights {
  uint32_t struct_size;
  int32_t is_binary;      /* of numbers only the signs count; the sign of 0 is +1 */
  phonebit_floats values; /* either these */
  phonebit_words packed;  /* or these */
} phonebit_weights;

typedef struct phonebit_conv2d {
  uint32_t struct_size;
  int32_t out_channels;
  const char* name; /* unique; NULL: "conv2d_3" */
  const phonebit_window* window;
  const phonebit_weights* weights;   /* binary, unless the input is f32 */
  const phonebit_epilogue* epilogue; /* NULL: nothing, values */
  int32_t groups;                    /* 0: 1 */
  int32_t pad_value;                 /* what padded taps of bits count as: -1, 0 or +1; else 0 */
  int32_t input_mul, input_add;      /* a u8 input counts as input_mul * level + input_add; both 0: 1, 0 */
} phonebit_conv2d;

/* Every output reads the whole map: weights [out_channels][height][width][channels]. */
typedef struct phonebit_dense {
  uint32_t struct_size;
  int32_t out_channels;
  const char* name;
  const phonebit_weights* weights;
  const phonebit_epilogue* epilogue;
  int32_t input_mul, input_add;
} phonebit_dense;

/* Padded taps are not looked at; every window has a tap inside the map. */
typedef struct phonebit_pool {
  uint32_t struct_size;
  const char* name;
  const phonebit_window* window;
  phonebit_floats gamma; /* for max pools of bits, in networks whose batch normalisation comes after the pool
                            and was given to the layer in front of it: that gamma; channels where it is
                            negative take the minimum, which makes both the same. None: all the maximum */
} phonebit_pool;

/* ---- Layers ---- */

/* `type`: u8 or f32. */
PHONEBIT_API phonebit_status phonebit_builder_input(phonebit_builder* builder, const char* name,
                                                    phonebit_type type, int32_t height, int32_t width,
                                                    int32_t channels, int32_t* tensor);
PHONEBIT_API phonebit_status phonebit_builder_conv2d(phonebit_builder* builder, int32_t input,
                                                     const phonebit_conv2d* layer, int32_t* output);
PHONEBIT_API phonebit_status phonebit_builder_dense(phonebit_builder* builder, int32_t input,
                                                    const phonebit_dense* layer, int32_t* output);
/* Of bits (gives bits) or f32. */
PHONEBIT_API phonebit_status phonebit_builder_max_pool(phonebit_builder* builder, int32_t input,
                                                       const phonebit_pool* layer, int32_t* output);
/* Of f32: the mean of the taps inside the map. */
PHONEBIT_API phonebit_status phonebit_builder_average_pool(phonebit_builder* builder, int32_t input,
                                                           const phonebit_pool* layer, int32_t* output);
/* An epilogue alone, on any tensor; bits count as -1 and +1. Adds tensors, scales levels, takes signs. `name`
 * may be NULL. */
PHONEBIT_API phonebit_status phonebit_builder_pointwise(phonebit_builder* builder, int32_t input,
                                                        const char* name, const phonebit_epilogue* epilogue,
                                                        int32_t* output);
/* Of f32, over the channels. `name` may be NULL. */
PHONEBIT_API phonebit_status phonebit_builder_softmax(phonebit_builder* builder, int32_t input,
                                                      const char* name, int32_t* output);

/* ---- The network ---- */

/* What a tensor is. `info->name` lives until the next layer is added. */
PHONEBIT_API phonebit_status phonebit_builder_tensor(const phonebit_builder* builder, int32_t tensor,
                                                     phonebit_tensor_info* info);
/* Makes a tensor the next output; outputs are numbered in the order of these calls. */
PHONEBIT_API phonebit_status phonebit_builder_output(phonebit_builder* builder, int32_t tensor);
/* Class names, one for each channel of the first output, in place of those before. */
PHONEBIT_API phonebit_status phonebit_builder_set_labels(phonebit_builder* builder, const char* const* labels,
                                                         int32_t count);
/* What images become before they are an input (its index, from 0), in place of a rule before. */
PHONEBIT_API phonebit_status phonebit_builder_set_preprocessing(phonebit_builder* builder, int32_t input,
                                                                const phonebit_preprocessing* rule);
/* Checks and prepares the network as phonebit_network_load_path does; it does not need the builder any more.
 * `options` NULL: defaults. Blocks. */
PHONEBIT_API phonebit_status phonebit_builder_network(const phonebit_builder* builder,
                                                      const phonebit_options* options,
                                                      phonebit_network** network);
/* Writes the network's .pbit file: in one step, so that a file that was there before is either kept or
 * replaced by a whole one. Blocks until it is on the disk. */
PHONEBIT_API phonebit_status phonebit_builder_save(const phonebit_builder* builder, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* PHONEBIT_LAYERS_C_H */
