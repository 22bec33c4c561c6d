# The NDK's toolchain, for the presets: says what to do where the NDK is not named.
if(NOT EXISTS "$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
  message(FATAL_ERROR "ANDROID_NDK_HOME is '$ENV{ANDROID_NDK_HOME}', where no Android NDK is. Set it to the NDK's folder, "
    "e.g. export ANDROID_NDK_HOME=$HOME/Android/Sdk/ndk/27.2.12479018 (docs/android.md).")
endif()
include("$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
