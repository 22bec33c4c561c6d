// Failures on demand. The program's own allocations, and the engine's file operations and OpenCL calls, go
// through here: the linker redirects them (--wrap), operator new is replaced.
#pragma once

namespace phonebit::fuzz {

enum class Fault {
  allocation,
  file,    ///< open, read, write, map, put on the disk, rename; while armed, transfers are short
  opencl,  ///< any call that gives a status, but for those that release something
};

/// From now on the operation `number` (from 1) of the kind fails, once or with all that follow it.
void arm(Fault kind, int number, bool is_lasting);
/// Nothing fails any more. Whether something has.
bool disarm();

/// Operations while it lives neither fail nor count: those of the test itself.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

}  // namespace phonebit::fuzz
