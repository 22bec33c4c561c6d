# Cross build for 32-bit Arm Linux with Debian's compiler, at the level of Android's armeabi-v7a (ARMv7-A with NEON);
# tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7-a)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)
# -Wno-psabi: gcc notes at every std::vector that GCC 7.1 changed how some types are passed.
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=neon -Wno-psabi")
set(BUILD_SHARED_LIBS OFF CACHE BOOL "ON makes programs that need this system's libraries, too")
if(NOT BUILD_SHARED_LIBS)
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static -L /usr/arm-linux-gnueabihf)
