// The instruction sets that some build of this library has. No file behind this header is compiled for one of
// them, so that every build knows all: plans for a phone are made on another machine.
#pragma once

namespace phonebit::cpu {

constexpr char kAvx512Name[] = "avx512";
constexpr char kAvx2Name[] = "avx2";
constexpr char kNeonI8mmName[] = "neon_i8mm";
constexpr char kNeonDotprodName[] = "neon_dotprod";
constexpr char kNeonName[] = "neon";
constexpr char kScalarName[] = "scalar";

/// Their names, best first; ends with nullptr.
constexpr const char* kIsaNames[] = {kAvx512Name, kAvx2Name,   kNeonI8mmName, kNeonDotprodName,
                                     kNeonName,   kScalarName, nullptr};

}  // namespace phonebit::cpu
