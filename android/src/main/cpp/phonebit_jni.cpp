// The native functions of NativeNetwork.java: a handle is a pointer to LoadedNetwork.
// Failures become Java exceptions with PhoneBit's text: IllegalArgumentException for arguments, CancellationException
// for what was cancelled, IllegalStateException for everything else.
#include <jni.h>
#include <phonebit/phonebit.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "java_values.h"

namespace {

using namespace phonebit_jni;

/// A network and its buffers; one thread at a time.
struct LoadedNetwork {
  explicit LoadedNetwork(phonebit::Network loaded)
      : network(std::move(loaded)), image_bytes(network.inputs()[0].bytes) {
    image.resize((image_bytes + sizeof(float) - 1) / sizeof(float));
    scores.resize(network.outputs()[0].elements());
  }

  phonebit::Network network;
  size_t image_bytes;
  std::vector<float> image;  ///< of floats, so that it is aligned for either type of input
  std::vector<float> scores;
};

/// Null with an exception pending.
LoadedNetwork* loaded(JNIEnv* env, jlong handle) {
  if (handle == 0) throw_java(env, kIllegalState, "the network is closed");
  return reinterpret_cast<LoadedNetwork*>(static_cast<intptr_t>(handle));
}

/// "", or why no image can go in or no numbers can come out.
std::string problem_of(const phonebit::Network& network) {
  const size_t inputs = network.inputs().size();
  if (inputs != 1) return "the network has " + std::to_string(inputs) + " inputs, expected one image";
  const phonebit::TensorInfo output = network.outputs()[0];
  if (output.type != phonebit::Type::f32) return "output '" + output.name + "' is not f32, expected numbers";
  return "";
}

jlong load(JNIEnv* env, jclass, jint fd, jlong offset, jlong bytes, jstring device, jint threads, jint cores,
           jstring cache_directory) {
  return guarded(env, [&]() -> jlong {
    const JavaText device_name(env, device);
    if (device_name.get() == nullptr) return 0;
    const JavaText cache(env, cache_directory);
    if (cache.get() == nullptr) return 0;
    const auto options = phonebit::Options()
                             .device(device_name.get())
                             .threads(threads)
                             .cores(static_cast<phonebit::Cores>(cores))
                             .cache_directory(cache.get());
    auto network = phonebit::Network::load_fd(fd, offset, bytes, options);
    if (!network) {
      throw_java(env, network.error());
      return 0;
    }
    const std::string problem = problem_of(*network);
    if (!problem.empty()) {
      throw_java(env, kIllegalArgument, problem);
      return 0;
    }
    auto result = std::make_unique<LoadedNetwork>(std::move(*network));
    return static_cast<jlong>(reinterpret_cast<intptr_t>(result.release()));
  });
}

void destroy(JNIEnv*, jclass, jlong handle) {
  delete reinterpret_cast<LoadedNetwork*>(static_cast<intptr_t>(handle));
}

jstring device(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jstring {
    const LoadedNetwork* const own = loaded(env, handle);
    return own != nullptr ? java_string(env, own->network.device()) : nullptr;
  });
}

jobjectArray labels(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jobjectArray {
    const LoadedNetwork* const own = loaded(env, handle);
    return own != nullptr ? java_strings(env, own->network.labels()) : nullptr;
  });
}

jobjectArray layers(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jobjectArray {
    const LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    std::vector<std::string> names;
    for (phonebit::LayerInfo& layer : own->network.layers()) names.push_back(std::move(layer.name));
    return java_strings(env, names);
  });
}

jintArray shapes(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jintArray {
    const LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    const phonebit::TensorInfo in = own->network.inputs()[0], out = own->network.outputs()[0];
    const jint sides[] = {in.height, in.width, in.channels, out.height, out.width, out.channels};
    jintArray result = env->NewIntArray(6);
    if (result != nullptr) env->SetIntArrayRegion(result, 0, 6, sides);
    return result;
  });
}

jfloatArray anchors(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jfloatArray {
    const LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    std::vector<float> sides;
    const auto head = own->network.detection();
    if (head.ok() && head->head == phonebit::Head::yolov2)
      for (const phonebit_anchor& anchor : head->anchors)
        sides.insert(sides.end(), {anchor.width, anchor.height});
    return java_floats(env, sides);
  });
}

jdoubleArray rule(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jdoubleArray {
    const LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    const auto got = own->network.preprocessing();
    if (!got) return throw_java(env, got.error()), nullptr;
    const phonebit::Preprocessing& rule = *got;
    return java_doubles(env, {static_cast<double>(rule.resize), static_cast<double>(rule.resize_to), rule.low,
                              rule.high, rule.mean[0], rule.mean[1], rule.mean[2], rule.deviation[0],
                              rule.deviation[1], rule.deviation[2]});
  });
}

/// The memory of one plane of android.media.Image; null with an exception pending.
const uint8_t* plane(JNIEnv* env, const char* name, jobject buffer, int64_t width, int64_t height,
                     int64_t row_bytes, int64_t pixel_bytes) {
  const auto refuse = [&](const std::string& text) -> const uint8_t* {
    throw_java(env, kIllegalArgument, std::string("plane ") + name + ": " + text);
    return nullptr;
  };
  if (row_bytes < 1 || pixel_bytes < 1)
    return refuse("row stride " + std::to_string(row_bytes) + ", pixel stride " +
                  std::to_string(pixel_bytes) + "; expected both above 0");
  void* const memory = buffer != nullptr ? env->GetDirectBufferAddress(buffer) : nullptr;
  if (memory == nullptr) return refuse("expected a direct ByteBuffer");
  const int64_t needed = (height - 1) * row_bytes + (width - 1) * pixel_bytes + 1;
  const int64_t capacity = env->GetDirectBufferCapacity(buffer);
  if (capacity < needed)
    return refuse("has " + std::to_string(capacity) + " bytes, expected at least " + std::to_string(needed));
  return static_cast<const uint8_t*>(memory);
}

/// Left, top, width, height; null: everything. Whether it could be read; else an exception is pending.
bool read_crop(JNIEnv* env, jintArray crop, phonebit::Image& image) {
  if (crop == nullptr) return true;
  if (env->GetArrayLength(crop) != 4) {
    throw_java(env, kIllegalArgument, "crop: expected left, top, width, height");
    return false;
  }
  jint values[4];
  env->GetIntArrayRegion(crop, 0, 4, values);
  image.crop_left = values[0];
  image.crop_top = values[1];
  image.crop_width = values[2];
  image.crop_height = values[3];
  return true;
}

/// Rows and columns of a plane, of which YUV_420_888 has chroma for every second one.
struct PlaneSize {
  int64_t width, height;
};

/// Fills planes and strides of `image`. Whether they could be; else an exception is pending.
bool read_planes(JNIEnv* env, jobjectArray buffers, jintArray strides, phonebit::Image& image) {
  const bool is_yuv = image.format == phonebit::ImageFormat::i420;
  const jsize count = is_yuv ? 3 : 1;
  if (buffers == nullptr || strides == nullptr || env->GetArrayLength(buffers) != count ||
      env->GetArrayLength(strides) != 2 * count) {
    throw_java(env, kIllegalArgument,
               "planes: expected " + std::to_string(count) + ", with two strides each");
    return false;
  }
  jint bytes[6];
  env->GetIntArrayRegion(strides, 0, 2 * count, bytes);
  const PlaneSize whole{image.width, image.height};
  const PlaneSize half{(whole.width + 1) / 2, (whole.height + 1) / 2};
  for (jsize i = 0; i < count; ++i) {
    const PlaneSize size = i == 0 ? whole : half;
    const jint row = bytes[2 * i], pixel = bytes[2 * i + 1];
    jobject buffer = env->GetObjectArrayElement(buffers, i);
    image.planes[i] =
        plane(env, is_yuv ? &"Y\0U\0V"[2 * i] : "RGBA", buffer, size.width, size.height, row, pixel);
    env->DeleteLocalRef(buffer);
    if (image.planes[i] == nullptr) return false;
    image.row_bytes[i] = row;
    image.pixel_bytes[i] = pixel;
  }
  return true;
}

jfloatArray run(JNIEnv* env, jclass, jlong handle, jint format, jint width, jint height, jobjectArray planes,
                jintArray strides, jintArray crop, jint rotation, jboolean is_mirrored) {
  return guarded(env, [&]() -> jfloatArray {
    LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    // Whatever the chroma's order and strides are, YUV_420_888 is three planes; NV21 is V one byte before U.
    phonebit::Image image;
    image.format = static_cast<phonebit::ImageFormat>(format);
    image.width = width;
    image.height = height;
    if (!read_planes(env, planes, strides, image) || !read_crop(env, crop, image)) return nullptr;
    image.rotation = rotation;
    image.is_mirrored = is_mirrored != JNI_FALSE;
    const auto prepared = own->network.prepare_image(image, {own->image.data(), own->image_bytes});
    if (!prepared) return throw_java(env, prepared.error()), nullptr;
    const auto done = own->network.forward({{own->image.data(), own->image_bytes}}, {own->scores});
    if (!done) return throw_java(env, done.error()), nullptr;
    return java_floats(env, own->scores);
  });
}

void cancel(JNIEnv* env, jclass, jlong handle) {
  LoadedNetwork* const own = loaded(env, handle);
  if (own == nullptr) return;
  const auto done = own->network.cancel();
  if (!done) throw_java(env, done.error());
}

jdoubleArray profile(JNIEnv* env, jclass, jlong handle, jint repeats) {
  return guarded(env, [&]() -> jdoubleArray {
    LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    const phonebit::Input image{own->image.data(), own->image_bytes};
    const auto times = own->network.profile(phonebit::Span<const phonebit::Input>(&image, 1), 1, repeats);
    if (!times) return throw_java(env, times.error()), nullptr;
    return java_doubles(env, *times);
  });
}

/// Null with an exception pending.
phonebit::EnergyMeter* meter_of(JNIEnv* env, jlong handle) {
  if (handle == 0) throw_java(env, kIllegalState, "the meter is closed");
  return reinterpret_cast<phonebit::EnergyMeter*>(static_cast<intptr_t>(handle));
}

jlong create_meter(JNIEnv* env, jclass) {
  return guarded(env, [&]() -> jlong {
    auto meter = phonebit::EnergyMeter::create();
    if (!meter) return throw_java(env, meter.error()), 0;
    auto own = std::make_unique<phonebit::EnergyMeter>(std::move(*meter));
    return static_cast<jlong>(reinterpret_cast<intptr_t>(own.release()));
  });
}

void start_meter(JNIEnv* env, jclass, jlong handle) {
  phonebit::EnergyMeter* const own = meter_of(env, handle);
  if (own == nullptr) return;
  const auto done = own->start();
  if (!done) throw_java(env, done.error());
}

jdoubleArray stop_meter(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&]() -> jdoubleArray {
    phonebit::EnergyMeter* const own = meter_of(env, handle);
    if (own == nullptr) return nullptr;
    const auto result = own->stop();
    if (!result) return throw_java(env, result.error()), nullptr;
    return java_doubles(env, {result->energy_mj, result->mean_mw, result->window_s});
  });
}

void destroy_meter(JNIEnv*, jclass, jlong handle) {
  delete reinterpret_cast<phonebit::EnergyMeter*>(static_cast<intptr_t>(handle));
}

template <class Function>
JNINativeMethod native_method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  jclass owner = env->FindClass("org/phonebit/NativeNetwork");
  if (owner == nullptr) return JNI_ERR;
  const JNINativeMethod methods[] = {
      native_method("load", "(IJJLjava/lang/String;IILjava/lang/String;)J", &load),
      native_method("destroy", "(J)V", &destroy),
      native_method("device", "(J)Ljava/lang/String;", &device),
      native_method("labels", "(J)[Ljava/lang/String;", &labels),
      native_method("layers", "(J)[Ljava/lang/String;", &layers),
      native_method("shapes", "(J)[I", &shapes),
      native_method("anchors", "(J)[F", &anchors),
      native_method("rule", "(J)[D", &rule),
      native_method("run", "(JIII[Ljava/nio/ByteBuffer;[I[IIZ)[F", &run),
      native_method("cancel", "(J)V", &cancel),
      native_method("profile", "(JI)[D", &profile),
      native_method("createMeter", "()J", &create_meter),
      native_method("startMeter", "(J)V", &start_meter),
      native_method("stopMeter", "(J)[D", &stop_meter),
      native_method("destroyMeter", "(J)V", &destroy_meter),
  };
  constexpr auto kCount = static_cast<jint>(sizeof methods / sizeof methods[0]);
  return env->RegisterNatives(owner, methods, kCount) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
