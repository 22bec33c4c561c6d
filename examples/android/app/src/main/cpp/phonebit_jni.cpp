// The native functions of NativeNetwork.java: a handle is a pointer to LoadedNetwork.
//
// Failures become Java exceptions with PhoneBit's text: IllegalArgumentException for arguments,
// IllegalStateException for everything else. A function that has thrown returns at once, for with an
// exception pending hardly any JNI function may be called.
#include <jni.h>
#include <phonebit/phonebit.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr const char* kIllegalArgument = "java/lang/IllegalArgumentException";
constexpr const char* kIllegalState = "java/lang/IllegalStateException";

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

/// UTF-8 as a Java string; null with an exception pending. NewStringUTF would take its own encoding only.
jstring java_string(JNIEnv* env, const std::string& text) {
  const auto length = static_cast<jsize>(text.size());
  jbyteArray bytes = env->NewByteArray(length);
  if (bytes == nullptr) return nullptr;
  env->SetByteArrayRegion(bytes, 0, length, reinterpret_cast<const jbyte*>(text.data()));
  jclass string_class = env->FindClass("java/lang/String");
  if (string_class == nullptr) return nullptr;
  jmethodID constructor = env->GetMethodID(string_class, "<init>", "([BLjava/lang/String;)V");
  if (constructor == nullptr) return nullptr;
  jstring encoding = env->NewStringUTF("UTF-8");
  if (encoding == nullptr) return nullptr;
  auto result = static_cast<jstring>(env->NewObject(string_class, constructor, bytes, encoding));
  env->DeleteLocalRef(encoding);
  env->DeleteLocalRef(string_class);
  env->DeleteLocalRef(bytes);
  return result;
}

void throw_java(JNIEnv* env, const char* class_name, const std::string& text) {
  jstring message = java_string(env, text);
  if (message == nullptr) return;
  jclass exception_class = env->FindClass(class_name);
  if (exception_class == nullptr) return;
  jmethodID constructor = env->GetMethodID(exception_class, "<init>", "(Ljava/lang/String;)V");
  if (constructor == nullptr) return;
  jobject exception = env->NewObject(exception_class, constructor, message);
  if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
}

void throw_java(JNIEnv* env, const phonebit::Error& error) {
  throw_java(env, error.status == phonebit::Status::input ? kIllegalArgument : kIllegalState, error.text);
}

/// Runs a function's body; a lack of memory becomes a Java exception, too. C++ exceptions must not reach
/// Java.
template <class Body>
auto guarded(JNIEnv* env, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    jclass out_of_memory = env->FindClass("java/lang/OutOfMemoryError");
    if (out_of_memory != nullptr) env->ThrowNew(out_of_memory, error.what());
  }
  return decltype(body())();
}

/// Characters of a Java string while it is in scope; get() is null with an exception pending.
class JavaText {
 public:
  JavaText(JNIEnv* env, jstring text) : env_(env), text_(text) {
    if (text == nullptr)
      throw_java(env, kIllegalArgument, "a text is null");
    else
      characters_ = env->GetStringUTFChars(text, nullptr);
  }
  ~JavaText() {
    if (characters_ != nullptr) env_->ReleaseStringUTFChars(text_, characters_);
  }
  JavaText(const JavaText&) = delete;
  JavaText& operator=(const JavaText&) = delete;

  const char* get() const { return characters_; }

 private:
  JNIEnv* env_;
  jstring text_;
  const char* characters_ = nullptr;
};

/// Null with an exception pending.
LoadedNetwork* loaded(JNIEnv* env, jlong handle) {
  if (handle == 0) throw_java(env, kIllegalState, "the network is closed");
  return reinterpret_cast<LoadedNetwork*>(static_cast<intptr_t>(handle));
}

/// Whether an image can go in and scores can come out; else why not.
std::string classifier_problem(const phonebit::Network& network) {
  const size_t inputs = network.inputs().size();
  if (inputs != 1) return "the network has " + std::to_string(inputs) + " inputs, expected one image";
  const phonebit::TensorInfo output = network.outputs()[0];
  if (output.type != phonebit::Type::f32) return "output '" + output.name + "' is not f32, expected scores";
  return "";
}

jlong load(JNIEnv* env, jclass, jint fd, jlong offset, jlong bytes, jstring device, jstring cache_directory) {
  return guarded(env, [&]() -> jlong {
    const JavaText device_name(env, device);
    if (device_name.get() == nullptr) return 0;
    const JavaText cache(env, cache_directory);
    if (cache.get() == nullptr) return 0;
    const auto options = phonebit::Options().device(device_name.get()).cache_directory(cache.get());
    auto network = phonebit::Network::load_fd(fd, offset, bytes, options);
    if (!network) {
      throw_java(env, network.error());
      return 0;
    }
    const std::string problem = classifier_problem(*network);
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
    if (own == nullptr) return nullptr;
    const std::vector<std::string> texts = own->network.labels();
    jclass string_class = env->FindClass("java/lang/String");
    if (string_class == nullptr) return nullptr;
    jobjectArray result = env->NewObjectArray(static_cast<jsize>(texts.size()), string_class, nullptr);
    for (size_t i = 0; result != nullptr && i < texts.size(); ++i) {
      jstring text = java_string(env, texts[i]);
      if (text == nullptr) return nullptr;
      env->SetObjectArrayElement(result, static_cast<jsize>(i), text);
      env->DeleteLocalRef(text);  // there may be more labels than local references
    }
    return result;
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

jfloatArray run(JNIEnv* env, LoadedNetwork& own, const phonebit::Image& image) {
  const auto prepared = own.network.prepare_image(image, {own.image.data(), own.image_bytes});
  if (!prepared) {
    throw_java(env, prepared.error());
    return nullptr;
  }
  const auto done = own.network.forward({{own.image.data(), own.image_bytes}}, {own.scores});
  if (!done) {
    throw_java(env, done.error());
    return nullptr;
  }
  const auto count = static_cast<jsize>(own.scores.size());
  jfloatArray result = env->NewFloatArray(count);
  if (result != nullptr) env->SetFloatArrayRegion(result, 0, count, own.scores.data());
  return result;
}

jfloatArray classify(JNIEnv* env, jclass, jlong handle, jint width, jint height, jobject y, jobject u,
                     jobject v, jint luma_row_bytes, jint chroma_row_bytes, jint chroma_pixel_bytes,
                     jintArray crop, jint rotation, jboolean is_mirrored) {
  return guarded(env, [&]() -> jfloatArray {
    LoadedNetwork* const own = loaded(env, handle);
    if (own == nullptr) return nullptr;
    // Whatever the chroma's order and strides are, YUV_420_888 is three planes; NV21 is V one byte before U.
    phonebit::Image image;
    image.format = phonebit::ImageFormat::i420;
    image.width = width;
    image.height = height;
    const int64_t half_width = (int64_t{width} + 1) / 2;
    const int64_t half_height = (int64_t{height} + 1) / 2;
    image.planes[0] = plane(env, "Y", y, width, height, luma_row_bytes, 1);
    if (image.planes[0] == nullptr) return nullptr;
    image.planes[1] = plane(env, "U", u, half_width, half_height, chroma_row_bytes, chroma_pixel_bytes);
    if (image.planes[1] == nullptr) return nullptr;
    image.planes[2] = plane(env, "V", v, half_width, half_height, chroma_row_bytes, chroma_pixel_bytes);
    if (image.planes[2] == nullptr) return nullptr;
    image.row_bytes[0] = luma_row_bytes;
    image.row_bytes[1] = image.row_bytes[2] = chroma_row_bytes;
    image.pixel_bytes[1] = image.pixel_bytes[2] = chroma_pixel_bytes;
    if (!read_crop(env, crop, image)) return nullptr;
    image.rotation = rotation;
    image.is_mirrored = is_mirrored != JNI_FALSE;
    return run(env, *own, image);
  });
}

template <class Function>
JNINativeMethod native_method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  jclass owner = env->FindClass("org/phonebit/example/NativeNetwork");
  if (owner == nullptr) return JNI_ERR;
  const JNINativeMethod methods[] = {
      native_method("load", "(IJJLjava/lang/String;Ljava/lang/String;)J", &load),
      native_method("destroy", "(J)V", &destroy),
      native_method("device", "(J)Ljava/lang/String;", &device),
      native_method("labels", "(J)[Ljava/lang/String;", &labels),
      native_method("classify",
                    "(JIILjava/nio/ByteBuffer;Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;III[IIZ)[F",
                    &classify),
  };
  constexpr auto kCount = static_cast<jint>(sizeof methods / sizeof methods[0]);
  return env->RegisterNatives(owner, methods, kCount) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
