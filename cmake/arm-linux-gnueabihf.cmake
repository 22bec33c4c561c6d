# Cross build for 32-bit Arm Linux with Debian's compiler, at the level of Android's armeabi-v7a (ARMv7-A with NEON);
# tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7-a)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)
# -Wno-psabi: gcc notes at every std::vector that GCC 7.1 changed how some types are passed.
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=neon -Wno-psabi")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(BUILD_SHARED_LIBS OFF CACHE BOOL "A static program cannot use a shared library")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static)
