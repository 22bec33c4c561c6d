// A caller of the library may keep values in ZA, the processor's accumulators of outer products, and let whatever needs
// them next save them first (lazy saving of Arm's procedure call standard). The kernels of cpu_backend/sme2 do so.
#include "kernel_check.h"

namespace check {
namespace {

/// What TPIDR2_EL0 leads to.
struct LazySave {
  uint8_t* buffer;
  uint16_t slices;
  uint8_t reserved[6];
};

size_t vector_bytes() {
  uint64_t bytes;
  asm(".arch_extension sme\n rdsvl %0, #1" : "=r"(bytes));
  return bytes;
}

/// ZA is on, holds `content`, and is to be saved to `save` by whatever needs it.
void fill_za(const uint8_t* content, const LazySave* save) {
  asm volatile(
      ".arch_extension sme\n"
      "smstart za\n"
      "mov w12, #0\n"
      "1: ldr za[w12, #0], [%[content]]\n"
      "addsvl %[content], %[content], #1\n"
      "add w12, w12, #1\n"
      "cmp w12, %w[slices]\n"
      "b.lo 1b\n"
      "msr tpidr2_el0, %[save]\n"
      : [content] "+r"(content)
      : [save] "r"(save), [slices] "r"(vector_bytes())
      : "w12", "cc", "memory");
}

struct State {
  uint64_t lazy_save, modes;
};

State state() {
  State found;
  asm volatile(".arch_extension sme\n mrs %0, tpidr2_el0\n mrs %1, svcr"
               : "=r"(found.lazy_save), "=r"(found.modes));
  return found;
}

/// A layer that takes outer products: 16 x 16 pixels of 64 channels, 64 filters of 3 x 3, "same" padding.
void run_layer(const BinaryConvRow& row) {
  const BinaryConvKernel& kernel = *row.code;
  ConvShape s = {};
  s.in_h = s.in_w = s.out_h = s.out_w = 16, s.in_c = s.out_c = 64;
  s.kernel_h = s.kernel_w = 3, s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = 1, s.input_mul = 1;
  REQUIRE(row.supports(s));
  const std::vector<uint32_t> input(16 * 16 * 2), weights(64 * 9 * 2);
  const std::vector<int32_t> thresholds(64);
  std::vector<uint32_t> output(16 * 16 * 2);
  AlignedBytes packed(kernel.packed_bytes(s)), scratch(kernel.scratch_bytes(s));
  kernel.pack_weights(s, weights.data(), thresholds.data(), packed.data);
  kernel.prepare_input(s, input.data(), scratch.data, 0, kernel.prepare_rows(s));
  kernel.run(s, packed.data, input.data(), scratch.data, {0, 256, 0, 1}, {output.data(), 2, nullptr});
}

TEST_CASE("ZA of a caller is saved") {
  for (const Isa* const isa : supported_isas()) {
    if (std::string(isa->name) != "sme2") continue;
    const size_t bytes = vector_bytes();
    std::mt19937 random(test_seed());
    std::vector<uint8_t> content(bytes * bytes), saved(content.size());
    for (uint8_t& byte : content) byte = (uint8_t)random();
    const LazySave save = {saved.data(), (uint16_t)bytes, {}};
    fill_za(content.data(), &save);
    run_layer(isa->binary_conv[0]);
    const State after = state();
    CHECK(after.lazy_save == 0);  // by which the caller knows
    CHECK(after.modes == 0);      // neither streaming mode nor ZA is on
    CHECK(saved == content);
  }
}

}  // namespace
}  // namespace check
