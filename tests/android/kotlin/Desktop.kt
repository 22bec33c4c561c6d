package org.phonebit.desktop

import android.content.Context
import android.content.res.AssetFileDescriptor
import android.content.res.AssetManager
import android.graphics.Bitmap
import android.graphics.ImageFormat
import android.graphics.Rect
import android.os.ParcelFileDescriptor
import androidx.camera.core.ImageInfo
import androidx.camera.core.ImageProxy
import java.io.File
import java.io.FileNotFoundException
import java.nio.ByteBuffer
import java.util.concurrent.CancellationException
import java.util.concurrent.CountDownLatch
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import org.phonebit.Detection
import org.phonebit.EnergyMeter
import org.phonebit.Frame
import org.phonebit.Listener
import org.phonebit.Network
import org.phonebit.Options
import org.phonebit.Plane

/** An APK in which a file lies after 12345 other bytes; what is compressed has no descriptor. */
private class Apk(private val folder: File) : Context() {
    override fun getCacheDir() = folder

    override fun getAssets() = object : AssetManager() {
        override fun openFd(name: String): AssetFileDescriptor {
            if (name.startsWith("compressed")) throw FileNotFoundException("can not be opened as a file descriptor")
            val packed = File(folder, "$name.apk")
            val file = ParcelFileDescriptor.open(packed, ParcelFileDescriptor.MODE_READ_ONLY)
            return AssetFileDescriptor(file, OFFSET, packed.length() - OFFSET)
        }

        override fun open(name: String) = File(folder, "$name.apk").inputStream()
    }
}

private const val OFFSET = 12345L

/** A camera's frame: chroma interleaved, gaps between rows, a crop. */
private class FakeProxy(folder: File) : ImageProxy {
    var isClosed = false

    private class FakePlane(private val bytes: ByteBuffer, private val row: Int, private val pixel: Int) :
        ImageProxy.PlaneProxy {
        override fun getBuffer() = bytes

        override fun getRowStride() = row

        override fun getPixelStride() = pixel
    }

    private val fakes = arrayOf(
        FakePlane(direct(File(folder, "y")), 104, 1),
        FakePlane(direct(File(folder, "u")), 107, 2),
        FakePlane(direct(File(folder, "v")), 107, 2),
    )

    override fun getFormat() = ImageFormat.YUV_420_888

    override fun getWidth() = 101

    override fun getHeight() = 67

    override fun getPlanes() = fakes.map { it as ImageProxy.PlaneProxy }.toTypedArray()

    override fun getCropRect() = Rect(7, 4, 88, 64)

    override fun getImageInfo() = ImageInfo { 90 }

    override fun close() {
        isClosed = true
    }
}

private fun direct(file: File): ByteBuffer {
    val bytes = file.readBytes()
    return ByteBuffer.allocateDirect(bytes.size).apply { put(bytes) }
}

private fun bits(scores: FloatArray) = scores.joinToString(" ") { "%08x".format(it.toRawBits()) }

private fun said(what: String, action: () -> Any?) {
    val text = try {
        "accepted ${action()}"
    } catch (error: Exception) {
        "${error.javaClass.simpleName}: ${error.message}"
    }
    println("$what: $text")
}

private fun bitmap(file: File, width: Int, height: Int): Bitmap =
    Bitmap.createBitmap(width, height, Bitmap.Config.ARGB_8888).apply { copyPixelsFromBuffer(direct(file).rewind()) }

private fun classify(apk: Apk, folder: File) {
    val proxy = FakeProxy(folder)
    Network.load(apk, "classifier.pbit", Options(device = "cpu", threads = 2)).use { network ->
        println("device: ${network.device}")
        println("labels: ${network.labels.joinToString(",")}")
        println("shapes: ${network.inputShape} ${network.outputShape}")
        val frame = proxy.use { Frame.of(it, isMirrored = true) }
        println("closed: ${proxy.isClosed}")
        println("frame: ${bits(network.run(frame))}")
        println("bitmap: ${bits(network.run(Frame.of(bitmap(File(folder, "rgba"), 33, 21))))}")
        println("best: ${network.classify(frame, 3).joinToString(",") { it.label }}")
        println("later: ${runBlocking { network.later { bits(run(frame)) } }}")
        println("listener: ${listened(network, frame)}")
        println("profile: ${network.profile(2).count { it.milliseconds >= 0 && it.layer.isNotEmpty() }}")
        refuse(network, proxy)
    }
}

private fun listened(network: Network, frame: Frame): String {
    val latch = CountDownLatch(1)
    var heard = ""
    network.later({ it.run(frame) }, object : Listener<FloatArray> {
        override fun onResult(result: FloatArray) {
            heard = bits(result)
            latch.countDown()
        }

        override fun onFailure(error: Exception) {
            heard = error.toString()
            latch.countDown()
        }
    })
    latch.await()
    return heard
}

private fun refuse(network: Network, proxy: FakeProxy) {
    val (y, u, v) = proxy.planes.map { Plane(it.buffer, it.rowStride, it.pixelStride) }
    fun of(vararg planes: Plane, width: Int = 101, rotation: Int = 0) =
        network.run(Frame.of(width, 67, planes.toList(), rotation))
    said("heap") { of(Plane(ByteBuffer.wrap(ByteArray(9000)), 104, 1), u, v) }
    said("short") { of(y, u, Plane(ByteBuffer.allocateDirect(100), 107, 2)) }
    said("stride") { of(y, Plane(u.buffer, 0, 2), v) }
    said("narrow") { of(Plane(y.buffer, 50, 1), u, v) }
    said("rotation") { of(y, u, v, rotation = 45) }
    said("size") { of(y, u, v, width = -2) }
    said("planes") { of(y, u) }
    said("configuration") { Frame.of(Bitmap.createBitmap(2, 2, Bitmap.Config.RGB_565)) }
    said("boxes") { network.detect(Frame.of(proxy)) }
    said("restoration") { network.restore(Frame.of(proxy)) }
}

private fun detect(apk: Apk, folder: File) {
    fun side(value: Float) = "%.3f".format(value)
    Network.load(apk, "detector.pbit", Options(device = "cpu")).use { network ->
        for (found: Detection in network.detect(Frame.of(bitmap(File(folder, "scene"), 90, 60)))) {
            val box = listOf(found.left, found.top, found.right, found.bottom).map(::side)
            println("found: ${found.label} ${side(found.score)} ${box.joinToString(" ")}")
        }
    }
}

private fun restore(apk: Apk, folder: File) {
    Network.load(apk, "restorer.pbit", Options(device = "cpu")).use { network ->
        val restored = network.restore(Frame.of(bitmap(File(folder, "small"), 6, 5)))
        val bytes = ByteBuffer.allocate(4 * restored.width * restored.height)
        restored.copyPixelsToBuffer(bytes)
        println("restored: ${bytes.array().joinToString(" ") { "%02x".format(it) }}")
    }
}

private fun load(apk: Apk, folder: File) {
    for (name in listOf("absent.pbit", "compressed.pbit", "text.pbit", "newer.pbit", "cut.pbit")) {
        said(name) { Network.load(apk, name) }
    }
    said("no file") { Network.load(File(folder, "absent"), folder) }
    said("unknown device") { Network.load(apk, "classifier.pbit", Options(device = "toaster")) }
}

private fun end(apk: Apk, folder: File) {
    val frame = Frame.of(bitmap(File(folder, "rgba"), 33, 21))
    val network = Network.load(apk, "classifier.pbit", Options(device = "cpu"))
    runBlocking {
        val begun = CountDownLatch(1)
        val ended = CountDownLatch(1)
        val running = launch(Dispatchers.IO) {
            network.later {
                begun.countDown()
                try {
                    while (true) run(frame)
                } finally {
                    ended.countDown()
                }
            }
        }
        begun.await()
        println("waits: ${withTimeoutOrNull(20) { network.later { run(frame) } }}")
        while (ended.count > 0) {
            running.cancel()
            network.cancel()
            delay(1)
        }
    }
    println("cancelled: ${network.run(frame).size}")
    network.close()
    network.close()
    network.cancel()
    said("run when closed") { network.run(frame) }
    said("later when closed") { runBlocking { network.later { run(frame) } } }
    said("profile when closed") { network.profile() }
    check(CancellationException::class.java.superclass == IllegalStateException::class.java)
}

/** Memory of the process in kB. */
private fun resident() = File("/proc/self/status").readLines().first { it.startsWith("VmRSS") }
    .filter { it.isDigit() }.toLong()

private fun leak(apk: Apk, folder: File) {
    val frame = Frame.of(bitmap(File(folder, "rgba"), 33, 21))
    fun rounds(count: Int) = repeat(count) {
        Network.load(apk, "classifier.pbit", Options(device = "cpu", threads = 1)).use { it.run(frame) }
    }
    rounds(50)
    System.gc()
    val before = resident()
    rounds(150)
    System.gc()
    println("grown: ${resident() - before}")
    println("threads: ${Thread.getAllStackTraces().keys.count { it.name == "PhoneBit" && it.isAlive }}")
}

/** Prints what test_kotlin.py compares with Python. The argument is the folder of the assets and images. */
fun main(arguments: Array<String>) {
    val folder = File(arguments[0])
    val apk = Apk(folder)
    classify(apk, folder)
    detect(apk, folder)
    restore(apk, folder)
    load(apk, folder)
    end(apk, folder)
    leak(apk, folder)
    said("energy") { EnergyMeter().use { it.start() } }
    println("done")
}
