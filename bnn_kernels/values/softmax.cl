// @kernel   softmax   over the channels of each pixel, or its logarithm
// @math     exp(x - max) / sum, SOFTMAX_LOG 1: x - max - log(sum); channel c adds to partial sum c % 16, the partial sums add up as a tree: the CPU's order
// @args     int first_pixel, int end_pixel, void* input, void* values
// @geometry global = (roundup(max(16, WIDE * GROUP_SIZE) * pixels, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     WIDE {0,1} = 0   1: a group for each pixel, else 16 work-items
// @tune     GROUP_SIZE {16,32,64,128,256} = 64
// @ref      SOFTMAX   @source own
#include "common/values.clh"
#include "common/functions.clh"

#define SUMS 16
#if WIDE
#define LANES GROUP_SIZE
#else
#define LANES SUMS
#endif

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void softmax(
    int first_pixel, int end_pixel, __global const void* restrict input, __global void* restrict values) {
  __local float shared[GROUP_SIZE];
  const int local_id = get_local_id(0), lane = REMAINDER(local_id, LANES);
  const int pixel = first_pixel + QUOTIENT(get_global_id(0), LANES);
  // All work-items reach every barrier; those of pixels beyond the last one have no channels.
  const int end = pixel < end_pixel ? OUT_C : 0;
  const int first = pixel * OUT_C;

  float largest = -INFINITY;
  for (int c = lane; c < end; c += LANES) {
    const float x = LOAD_VALUE(INPUT_HALF, input, first + c);
    largest = x > largest ? x : largest;
  }
  shared[local_id] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      const float other = shared[local_id + half_lanes];
      largest = other > largest ? other : largest;
      shared[local_id] = largest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  largest = shared[local_id - lane];
  barrier(CLK_LOCAL_MEM_FENCE);

  float sum = 0.0f;
  // What stands for channels beyond the last one, 0, changes no sum.
  for (int c = lane; c < OUT_C + lane; c += LANES) {
    const float e = c < end ? exponential(LOAD_VALUE(INPUT_HALF, input, first + c) - largest) : 0.0f;
#if WIDE
    shared[local_id] = e;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < SUMS) {
      for (int i = lane; i < LANES; i += SUMS) sum = sum + shared[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    sum = sum + e;
#endif
  }
  shared[local_id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_lanes = SUMS / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      sum = sum + shared[local_id + half_lanes];
      shared[local_id] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = shared[local_id - lane];

  const float log_sum = SOFTMAX_LOG ? logarithm(sum) : 0.0f;
  for (int c = lane; c < end; c += LANES) {
    const float shifted = LOAD_VALUE(INPUT_HALF, input, first + c) - largest;
    // Computed again rather than kept: a half would have rounded it.
    const float result = SOFTMAX_LOG ? shifted - log_sum : exponential(shifted) / sum;
    STORE_VALUE(VALUES_HALF, values, first + c, result);
  }
}
