# Cross build for 64-bit Arm Linux with Debian's clang-19 and lld-19, with the options of an Android build: the
# compiler, the linker and the flags of today's NDK (r28), so what libphonebit.so has in kB here is near to what it has
# on a phone. The C++ library is that of g++-aarch64-linux-gnu, shared. Tests run under qemu-user.
#
#   apt-get install clang-19 lld-19 llvm-19 g++-aarch64-linux-gnu qemu-user-static
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
foreach(LANGUAGE C CXX)
  set(CMAKE_${LANGUAGE}_COMPILER_TARGET aarch64-linux-gnu)
  # As the NDK's own toolchain file has them.
  set(CMAKE_${LANGUAGE}_FLAGS_INIT "-fstack-protector-strong -D_FORTIFY_SOURCE=2")
endforeach()
# std::stable_sort of libstdc++ 12 calls what this clang knows to be deprecated.
string(APPEND CMAKE_CXX_FLAGS_INIT " -Wno-deprecated-declarations")
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_AR llvm-ar-19)  # which understands objects that wait for link-time optimisation
set(CMAKE_RANLIB llvm-ranlib-19)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-fuse-ld=lld")
set(PHONEBIT_LINK_AS_ANDROID ON)
set(CMAKE_PLATFORM_NO_VERSIONED_SONAME ON)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
