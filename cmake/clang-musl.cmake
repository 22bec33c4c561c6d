# Cross build with clang, libc++ and musl, all of them in PyPI's package ziglang: what the NDK has, with another small C
# library in bionic's place. So neither gcc, nor libstdc++, nor glibc hides a mistake. Tests run under qemu-user.
#
#   pip install ziglang
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/clang-musl.cmake [-DPHONEBIT_CROSS_PROCESSOR=armv7-a]
set(PHONEBIT_CROSS_PROCESSOR aarch64 CACHE STRING "aarch64 or armv7-a")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PHONEBIT_CROSS_PROCESSOR ZIG_PYTHON)
# Linking would first build another libc++, with the compiler checks' flags.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${PHONEBIT_CROSS_PROCESSOR})
if(PHONEBIT_CROSS_PROCESSOR STREQUAL "aarch64")
  set(ZIG_TARGET aarch64-linux-musl)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
elseif(PHONEBIT_CROSS_PROCESSOR STREQUAL "armv7-a")
  # Android's armeabi-v7a, but for the registers that calls pass floats in.
  set(ZIG_TARGET arm-linux-musleabihf -mcpu=generic+v7a+neon)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static)
else()
  message(FATAL_ERROR "PHONEBIT_CROSS_PROCESSOR is '${PHONEBIT_CROSS_PROCESSOR}'; expected aarch64 or armv7-a")
endif()

# There is no dynamic linker to run others.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(BUILD_SHARED_LIBS OFF CACHE BOOL "A static program cannot use a shared library")
find_program(ZIG_PYTHON NAMES python3 python REQUIRED)
foreach(LANGUAGE C CXX)
  set(CMAKE_${LANGUAGE}_ARCHIVE_CREATE "<CMAKE_AR> -m ziglang ar qc <TARGET> <OBJECTS>")
  set(CMAKE_${LANGUAGE}_ARCHIVE_APPEND "<CMAKE_AR> -m ziglang ar q <TARGET> <OBJECTS>")
  set(CMAKE_${LANGUAGE}_ARCHIVE_FINISH "<CMAKE_AR> -m ziglang ranlib <TARGET>")
endforeach()
set(CMAKE_AR ${ZIG_PYTHON})
set(CMAKE_C_COMPILER ${ZIG_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/zig_compiler.py cc -target ${ZIG_TARGET})
set(CMAKE_CXX_COMPILER ${ZIG_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/zig_compiler.py c++ -target ${ZIG_TARGET})
