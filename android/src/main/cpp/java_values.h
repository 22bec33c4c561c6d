// Values and exceptions of Java. A function that has thrown returns at once, for with an exception pending hardly any
// JNI function may be called.
#pragma once

#include <jni.h>
#include <phonebit/phonebit.h>

#include <exception>
#include <string>
#include <vector>

namespace phonebit_jni {

inline constexpr const char* kIllegalArgument = "java/lang/IllegalArgumentException";
inline constexpr const char* kIllegalState = "java/lang/IllegalStateException";
inline constexpr const char* kCancelled = "java/util/concurrent/CancellationException";

/// UTF-8 as a Java string; null with an exception pending. NewStringUTF would take its own encoding only.
inline jstring java_string(JNIEnv* env, const std::string& text) {
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

inline void throw_java(JNIEnv* env, const char* class_name, const std::string& text) {
  jstring message = java_string(env, text);
  if (message == nullptr) return;
  jclass exception_class = env->FindClass(class_name);
  if (exception_class == nullptr) return;
  jmethodID constructor = env->GetMethodID(exception_class, "<init>", "(Ljava/lang/String;)V");
  if (constructor == nullptr) return;
  jobject exception = env->NewObject(exception_class, constructor, message);
  if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
}

inline void throw_java(JNIEnv* env, const phonebit::Error& error) {
  const char* const exception_class = error.status == phonebit::Status::input       ? kIllegalArgument
                                      : error.status == phonebit::Status::cancelled ? kCancelled
                                                                                    : kIllegalState;
  throw_java(env, exception_class, error.text);
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
inline jobjectArray java_strings(JNIEnv* env, const std::vector<std::string>& texts) {
  jclass string_class = env->FindClass("java/lang/String");
  if (string_class == nullptr) return nullptr;
  jobjectArray result = env->NewObjectArray(static_cast<jsize>(texts.size()), string_class, nullptr);
  for (size_t i = 0; result != nullptr && i < texts.size(); ++i) {
    jstring text = java_string(env, texts[i]);
    if (text == nullptr) return nullptr;
    env->SetObjectArrayElement(result, static_cast<jsize>(i), text);
    env->DeleteLocalRef(text);  // there may be more texts than local references
  }
  return result;
}

inline jdoubleArray java_doubles(JNIEnv* env, const std::vector<double>& values) {
  const auto count = static_cast<jsize>(values.size());
  jdoubleArray result = env->NewDoubleArray(count);
  if (result != nullptr) env->SetDoubleArrayRegion(result, 0, count, values.data());
  return result;
}

inline jfloatArray java_floats(JNIEnv* env, const std::vector<float>& values) {
  const auto count = static_cast<jsize>(values.size());
  jfloatArray result = env->NewFloatArray(count);
  if (result != nullptr) env->SetFloatArrayRegion(result, 0, count, values.data());
  return result;
}

}  // namespace phonebit_jni
