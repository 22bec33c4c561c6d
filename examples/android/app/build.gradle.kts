plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

// Made by `python packaging/aar.py -o examples/android/app/libs/phonebit.aar` in PhoneBit's checkout.
val phonebit = file("libs/phonebit.aar")
check(phonebit.isFile) { "$phonebit does not exist: python packaging/aar.py -o examples/android/app/libs/phonebit.aar" }

android {
    namespace = "org.phonebit.example"
    compileSdk = 35

    defaultConfig {
        applicationId = "org.phonebit.example"
        minSdk = 24
        targetSdk = 35
        versionCode = 1
        versionName = "1.0"
        ndk { abiFilters += listOf("arm64-v8a", "armeabi-v7a", "x86_64") }
    }
    buildTypes {
        release {
            // The AAR brings the rules for what its native library finds by name.
            isMinifyEnabled = true
            isShrinkResources = true
            proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
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
    implementation(files(phonebit))
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.8.0")
    implementation("androidx.activity:activity-ktx:1.9.3")
    implementation("androidx.camera:camera-camera2:1.4.1")
    implementation("androidx.camera:camera-lifecycle:1.4.1")
    implementation("androidx.camera:camera-view:1.4.1")
    implementation("androidx.core:core:1.13.1")
}
