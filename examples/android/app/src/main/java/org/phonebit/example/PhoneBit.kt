package org.phonebit.example

import android.content.Context
import android.graphics.ImageFormat
import android.media.Image

/** A class and how the network scored it. */
data class Classification(val label: String, val score: Float)

/**
 * A classifier from a .pbit file. Any thread: calls take turns, and [close] waits for the one that runs.
 * Failures are exceptions with PhoneBit's text.
 */
class PhoneBit private constructor(private var network: Long) : AutoCloseable {
    private val labels: Array<String> = NativeNetwork.labels(network)

    /** What runs the network: "cpu:neon", "gpu:0 Mali-G610". */
    val device: String = NativeNetwork.device(network)

    /**
     * The best class of a camera frame.
     *
     * @param image in the format YUV_420_888; the caller closes it.
     * @param rotation clockwise degrees that make it upright, e.g. ImageInfo.getRotationDegrees().
     * @param isMirrored whether left and right are swapped, as in a front camera's preview.
     */
    @Synchronized
    fun classify(image: Image, rotation: Int, isMirrored: Boolean = false): Classification {
        require(image.format == ImageFormat.YUV_420_888) {
            "image format ${image.format}, expected YUV_420_888 (${ImageFormat.YUV_420_888})"
        }
        val (y, u, v) = image.planes
        val crop = image.cropRect
        val scores = NativeNetwork.classify(
            network,
            image.width,
            image.height,
            y.buffer,
            u.buffer,
            v.buffer,
            y.rowStride,
            u.rowStride,
            u.pixelStride,
            intArrayOf(crop.left, crop.top, crop.width(), crop.height()),
            rotation,
            isMirrored,
        )
        val best = scores.indices.maxBy { scores[it] }
        return Classification(labels.getOrElse(best) { "class $best" }, scores[best])
    }

    @Synchronized
    override fun close() {
        NativeNetwork.destroy(network)
        network = 0
    }

    companion object {
        /**
         * Loads an asset, which must be stored uncompressed (noCompress in app/build.gradle.kts). Blocks; on a
         * GPU's first start for as long as its kernels take to compile. Not for the main thread.
         *
         * @param device "auto", "cpu", "gpu", "gpu+cpu".
         */
        fun fromAsset(context: Context, name: String, device: String = "auto"): PhoneBit =
            context.assets.openFd(name).use { file ->
                val descriptor = file.parcelFileDescriptor.fd
                val cache = context.cacheDir.path
                PhoneBit(NativeNetwork.load(descriptor, file.startOffset, file.length, device, cache))
            }
    }
}
