package org.phonebit

import android.graphics.Bitmap
import android.graphics.ImageFormat
import android.graphics.Rect
import android.media.Image
import androidx.camera.core.ImageProxy
import java.nio.ByteBuffer

/**
 * An image in memory that PhoneBit reads where it lies. Its buffers must stay unchanged while a network reads it.
 *
 * @property width pixels of a row, before [crop] and [rotation].
 * @property height rows.
 * @property rotation clockwise degrees that make the image upright: 0, 90, 180 or 270.
 * @property isMirrored whether left and right are swapped after rotating, as in a front camera's preview.
 * @property crop what is looked at, in pixels; null: everything.
 */
class Frame private constructor(
    internal val format: Int,
    val width: Int,
    val height: Int,
    internal val planes: Array<ByteBuffer>,
    internal val strides: IntArray,
    val rotation: Int,
    val isMirrored: Boolean,
    val crop: Rect?,
) {
    /** Width and height of the upright image, of its crop if it has one. */
    internal val uprightSize: Pair<Int, Int>
        get() {
            val size = (crop?.width() ?: width) to (crop?.height() ?: height)
            return if (rotation % 180 == 0) size else size.second to size.first
        }

    companion object {
        private const val RGBA = 2
        private const val I420 = 7

        /**
         * A camera frame in the format YUV_420_888, whose planes are read where they are: close [image] after the
         * network has run.
         *
         * @throws IllegalArgumentException another format, or planes with strides or sizes that cannot be.
         */
        @JvmStatic
        @JvmOverloads
        fun of(image: Image, rotation: Int = 0, isMirrored: Boolean = false): Frame {
            requireYuv(image.format)
            val planes = image.planes.map { Plane(it.buffer, it.rowStride, it.pixelStride) }
            return of(image.width, image.height, planes, rotation, isMirrored, image.cropRect)
        }

        /** The same of CameraX' frame, with the rotation that it names. */
        @JvmStatic
        @JvmOverloads
        fun of(image: ImageProxy, isMirrored: Boolean = false): Frame {
            requireYuv(image.format)
            val planes = image.planes.map { Plane(it.buffer, it.rowStride, it.pixelStride) }
            return of(image.width, image.height, planes, image.imageInfo.rotationDegrees, isMirrored, image.cropRect)
        }

        /** Planes Y, U and V with strides in bytes, from wherever they are; of direct buffers. */
        @JvmStatic
        @JvmOverloads
        fun of(
            width: Int,
            height: Int,
            planes: List<Plane>,
            rotation: Int = 0,
            isMirrored: Boolean = false,
            crop: Rect? = null,
        ): Frame {
            require(planes.size == 3) { "got ${planes.size} planes, expected Y, U and V" }
            val strides = planes.flatMap { listOf(it.rowStride, it.pixelStride) }.toIntArray()
            val buffers = planes.map { it.buffer }.toTypedArray()
            return Frame(I420, width, height, buffers, strides, rotation, isMirrored, crop)
        }

        /**
         * A copy of a bitmap's pixels, so that it may be recycled at once.
         *
         * @throws IllegalArgumentException a configuration other than ARGB_8888: use
         *   `bitmap.copy(Bitmap.Config.ARGB_8888, false)`.
         */
        @JvmStatic
        @JvmOverloads
        fun of(bitmap: Bitmap, rotation: Int = 0, isMirrored: Boolean = false): Frame {
            require(bitmap.config == Bitmap.Config.ARGB_8888) {
                "bitmap has configuration ${bitmap.config}, expected ARGB_8888; " +
                    "use bitmap.copy(Bitmap.Config.ARGB_8888, false)"
            }
            val rowBytes = 4 * bitmap.width
            val pixels = ByteBuffer.allocateDirect(rowBytes * bitmap.height)
            bitmap.copyPixelsToBuffer(pixels)
            val strides = intArrayOf(rowBytes, 4)
            return Frame(RGBA, bitmap.width, bitmap.height, arrayOf(pixels), strides, rotation, isMirrored, null)
        }

        private fun requireYuv(format: Int) = require(format == ImageFormat.YUV_420_888) {
            "image format $format, expected YUV_420_888 (${ImageFormat.YUV_420_888})"
        }
    }
}

/**
 * One plane of an image.
 *
 * @property buffer a direct buffer, read from its first byte on, whatever its position is.
 * @property rowStride bytes from one row to the next.
 * @property pixelStride bytes from one sample of a row to the next.
 */
class Plane(val buffer: ByteBuffer, val rowStride: Int, val pixelStride: Int)
