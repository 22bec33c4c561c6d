// Which instruction sets this binary holds, and which one this processor should use.
#include <string.h>

#include "isa_kernels.h"

namespace phonebit::engine::cpu {

// Best first; select_isa takes the first that the processor supports.
static const Isa* const kAllIsas[] = {
#ifdef PHONEBIT_HAVE_AVX512
    &kAvx512Isa,
#endif
#ifdef PHONEBIT_HAVE_AVX2
    &kAvx2Isa,
#endif
#ifdef PHONEBIT_HAVE_SME2
    &kSme2Isa,
#endif
#ifdef PHONEBIT_HAVE_NEON_I8MM
    &kNeonI8mmIsa,
#endif
#ifdef PHONEBIT_HAVE_NEON_DOTPROD
    &kNeonDotprodIsa,
#endif
#ifdef PHONEBIT_HAVE_NEON
    &kNeonIsa,
#endif
    &kScalarIsa,      nullptr};

const Isa* const* all_isas() { return kAllIsas; }

const Isa* select_isa(const char* forced_name) {
  const bool forced = forced_name != nullptr && forced_name[0] != '\0';
  for (const Isa* const* isa = kAllIsas; *isa != nullptr; ++isa) {
    if (forced && strcmp((*isa)->name, forced_name) != 0) continue;
    if ((*isa)->supported()) return *isa;
  }
  return nullptr;
}

}  // namespace phonebit::engine::cpu
