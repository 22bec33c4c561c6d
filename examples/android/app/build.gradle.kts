plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

// PhoneBit's checkout, from which the library is built. An installed package instead:
// -Pphonebit.package=/folder with one `cmake --install` for each ABI, in folders named like the ABIs.
val phonebitSource = providers.gradleProperty("phonebit.source").orElse("${rootDir}/../..")
val phonebitPackage = providers.gradleProperty("phonebit.package")

android {
    namespace = "org.phonebit.example"
    compileSdk = 35
    ndkVersion = "27.2.12479018"

    defaultConfig {
        applicationId = "org.phonebit.example"
        minSdk = 24
        targetSdk = 35
        versionCode = 1
        versionName = "1.0"
        ndk { abiFilters += listOf("arm64-v8a", "armeabi-v7a", "x86_64") }
        externalNativeBuild {
            cmake {
                arguments += "-DANDROID_STL=c++_static"
                arguments += if (phonebitPackage.isPresent) {
                    "-DPHONEBIT_PACKAGE=${phonebitPackage.get()}"
                } else {
                    "-DPHONEBIT_SOURCE=${phonebitSource.get()}"
                }
            }
        }
    }
    externalNativeBuild {
        cmake {
            path = file("src/main/cpp/CMakeLists.txt")
            version = "3.22.1"
        }
    }
    // PhoneBit maps the model where it lies in the APK; a compressed asset has no file descriptor.
    androidResources { noCompress += "pbit" }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
    kotlinOptions { jvmTarget = "17" }
}

dependencies {
    implementation("androidx.activity:activity-ktx:1.9.3")
    implementation("androidx.annotation:annotation-experimental:1.4.1")
    implementation("androidx.camera:camera-camera2:1.4.1")
    implementation("androidx.camera:camera-lifecycle:1.4.1")
    implementation("androidx.camera:camera-view:1.4.1")
    implementation("androidx.core:core:1.13.1")
}
