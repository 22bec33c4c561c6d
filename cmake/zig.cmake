# Cross build by the clang, the libc++ and the C libraries of PyPI's package ziglang, for any system:
#
#   pip install ziglang
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/zig.cmake -DZIG_TARGET=TARGET
#
# aarch64-linux-musl, arm-linux-musleabihf  tests run under qemu-user. What the NDK has, with another small C library in
#                                           bionic's place: neither gcc, nor libstdc++, nor glibc hides a mistake
# x86_64-windows-gnu                        tests run under Wine
# aarch64-macos                             compiled only
# x86_64-linux-gnu.2.17 and the like        wheels for systems with that glibc or a later one (packaging/wheels.py)
set(ZIG_TARGET "" CACHE STRING "PROCESSOR-SYSTEM-LIBRARY, as zig names it")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_TARGET ZIG ZIG_PYTHON)
# Linking would first build another libc++, with the compiler checks' flags.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
if(NOT ZIG_TARGET MATCHES "^([a-z0-9_]+)-(linux|macos|windows)")
  message(FATAL_ERROR "ZIG_TARGET is '${ZIG_TARGET}'; expected one such as aarch64-linux-musl")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
# CMake passes it on, and links nothing to learn what the compiler is.
set(CMAKE_C_COMPILER_TARGET ${ZIG_TARGET})
set(CMAKE_CXX_COMPILER_TARGET ${ZIG_TARGET})
set(ZIG_OPTIONS "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm")
  # Android's armeabi-v7a, but for the registers that calls pass floats in.
  list(APPEND ZIG_OPTIONS -mcpu=generic+v7a+neon)
endif()
if(ZIG_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
  set(CMAKE_CROSSCOMPILING_EMULATOR wine)
elseif(ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static)
endif()
if(ZIG_TARGET MATCHES "musl")
  # There is no dynamic linker to run others. Zig compiles the C libraries as it links first, the faster the smaller
  # they are to be.
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Os")
  set(BUILD_SHARED_LIBS OFF CACHE BOOL "A static program cannot use a shared library")
endif()

# Where others write no debug information, zig does, and at -O0 it looks for undefined behavior, for which there is no
# library here.
set(CMAKE_C_FLAGS_INIT "-g0 -fno-sanitize=undefined")
set(CMAKE_CXX_FLAGS_INIT ${CMAKE_C_FLAGS_INIT})
find_program(ZIG_PYTHON NAMES python3 python REQUIRED)
if(NOT ZIG)
  execute_process(COMMAND ${ZIG_PYTHON} -c "import ziglang; print(ziglang.__path__[0])"
    OUTPUT_VARIABLE ZIG_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(ZIG ${ZIG_FOLDER}/zig CACHE FILEPATH "The compiler")
endif()
foreach(TOOL ar ranlib)
  string(TOUPPER CMAKE_${TOOL} VARIABLE)
  set(${VARIABLE} ${CMAKE_BINARY_DIR}/zig-${TOOL})
  file(WRITE ${${VARIABLE}} "#!/bin/sh\nexec '${ZIG}' ${TOOL} \"$@\"\n")
  file(CHMOD ${${VARIABLE}} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER ${ZIG_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/zig_compiler.py ${ZIG} cc ${ZIG_OPTIONS})
set(CMAKE_CXX_COMPILER ${ZIG_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/zig_compiler.py ${ZIG} c++ ${ZIG_OPTIONS})
