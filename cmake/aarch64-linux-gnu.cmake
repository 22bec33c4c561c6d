# Cross build for 64-bit Arm Linux with Debian's compiler; tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
# As Android lays libraries out, so that sizes are comparable.
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-z,max-page-size=16384")
set(BUILD_SHARED_LIBS OFF CACHE BOOL "A static program cannot use a shared library")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
