package org.phonebit

import android.content.Context
import android.graphics.Bitmap
import android.os.ParcelFileDescriptor
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.nio.ByteBuffer
import java.util.concurrent.CancellationException
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.Future
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.suspendCancellableCoroutine

/** A class and how the network scored it: the output's number as it is, which is a probability after a softmax. */
data class Classification(val index: Int, val label: String, val score: Float)

/** What a layer took, in milliseconds. */
data class LayerTime(val layer: String, val milliseconds: Double)

/** Which processors the threads of a network run on. */
enum class Cores { ANY, BIG, LITTLE }

/**
 * How a network is loaded.
 *
 * @property device "auto" (the GPU where OpenCL is, else the CPU), "cpu", "gpu", "gpu+cpu".
 * @property threads of an inference; 0: one for each processor that may be used.
 */
data class Options @JvmOverloads constructor(
    val device: String = "auto",
    val threads: Int = 0,
    val cores: Cores = Cores.ANY,
)

/** Called when a run in the background ends: in the executor that was given, or in the network's thread. */
interface Listener<in T> {
    fun onResult(result: T)

    fun onFailure(error: Exception)
}

/**
 * A network from a .pbit file, with one input that takes images.
 *
 * Any thread: calls take turns, and [close] ends what runs and waits for it. Functions without `suspend` block, for as
 * long as an inference takes: keep them off the main thread. After [close] each throws an IllegalStateException.
 * Failures carry PhoneBit's text: an IllegalArgumentException for an argument (a frame with strides that cannot be), an
 * IllegalStateException for everything else (a damaged file, a device that failed).
 */
class Network private constructor(private var handle: Long) : AutoCloseable {
    /** What runs the network: "cpu:neon", "gpu:0 Mali-G610". */
    val device: String = NativeNetwork.device(handle)

    /** Class names, one per channel of the first output or one per class of its boxes; may be empty. */
    val labels: List<String> = NativeNetwork.labels(handle).toList()

    private val shapes = NativeNetwork.shapes(handle)

    /** Height, width and channels of the input. */
    val inputShape: List<Int> = shapes.take(3)

    /** Height, width and channels of the first output. */
    val outputShape: List<Int> = shapes.drop(3)

    private val layers = NativeNetwork.layers(handle)
    private val rule = NativeNetwork.rule(handle)
    private val anchors = NativeNetwork.anchors(handle)
    private val lock = Any()  // while the network runs
    private val life = Any()  // while it is used at all, by cancel, too
    private val worker = Executors.newSingleThreadExecutor { task ->
        Thread(task, "PhoneBit").apply { isDaemon = true }
    }

    /** The first output for an image, channels innermost: a new array of height x width x channels numbers. */
    fun run(frame: Frame): FloatArray = synchronized(lock) {
        val crop = frame.crop?.let { intArrayOf(it.left, it.top, it.width(), it.height()) }
        NativeNetwork.run(
            handle, frame.format, frame.width, frame.height, frame.planes, frame.strides, crop, frame.rotation,
            frame.isMirrored,
        )
    }

    /** The best classes of an image, at most [count], best first. */
    @JvmOverloads
    fun classify(frame: Frame, count: Int = 5): List<Classification> {
        val scores = run(frame)
        return scores.indices.sortedByDescending { scores[it] }.take(count).map {
            Classification(it, labels.getOrElse(it) { _ -> "class $it" }, scores[it])
        }
    }

    /**
     * What a detector finds in an image, best first.
     *
     * @param minScore objectness times class probability from which a box counts, 0..1.
     * @param maxOverlap boxes of one class that overlap by more (intersection over union) are one.
     * @throws IllegalArgumentException the file does not say what boxes the output means.
     */
    @JvmOverloads
    fun detect(frame: Frame, minScore: Float = 0.3f, maxOverlap: Float = 0.45f): List<Detection> {
        require(anchors.isNotEmpty()) { "the file says nothing of boxes: convert it with --detection" }
        val placement =
            Placement(frame.uprightSize, inputShape[1] to inputShape[0], rule[0].toInt(), rule[1].toInt())
        return BoxDecoder(anchors, outputShape.toIntArray())
            .decode(run(frame), minScore.toDouble(), maxOverlap.toDouble())
            .mapNotNull { (box, score, index) ->
                val (left, top, right, bottom) = placement.toImage(box).map { it.toFloat() }
                val label = labels.getOrElse(index) { "class $index" }
                Detection(index, label, score.toFloat(), left, top, right, bottom)
                    .takeIf { right > left && bottom > top }
            }
    }

    /**
     * The image that a restoring network makes of one: its output's three channels in the values of its input.
     *
     * @throws IllegalArgumentException the output has other than three channels.
     */
    fun restore(frame: Frame): Bitmap {
        val (height, width, channels) = outputShape
        require(channels == 3) { "the output has $channels channels, expected red, green and blue" }
        val values = run(frame)
        val pixels = ByteBuffer.allocateDirect(4 * width * height)
        for (i in values.indices) {
            val channel = i % 3
            val value = values[i] * rule[DEVIATIONS + channel] + rule[MEANS + channel]
            val level = Math.rint((value - rule[LOW]) / (rule[HIGH] - rule[LOW]) * 255).coerceIn(0.0, 255.0)
            pixels.put(level.toInt().toByte())
            if (channel == 2) pixels.put(255.toByte())
        }
        pixels.rewind()
        return Bitmap.createBitmap(width, height, Bitmap.Config.ARGB_8888).apply { copyPixelsFromBuffer(pixels) }
    }

    /** Milliseconds of each layer on the image of the last run (before one: on a black image), medians of [repeats]. */
    @JvmOverloads
    fun profile(repeats: Int = 10): List<LayerTime> = synchronized(lock) {
        NativeNetwork.profile(handle, repeats).zip(layers) { time, layer -> LayerTime(layer, time) }
    }

    /**
     * Runs [work] on this network in its own thread: `network.later { classify(frame) }`. Works run one after the
     * other. Cancelling the coroutine drops a work that waits and ends one that runs.
     */
    suspend fun <T> later(work: Network.() -> T): T = suspendCancellableCoroutine { continuation ->
        val task = submit(work, { continuation.resume(it) }, { continuation.resumeWithException(it) })
        continuation.invokeOnCancellation { if (!task.cancel(false)) cancel() }
    }

    /**
     * The same with a listener, which is called in [executor], such as ContextCompat.getMainExecutor(context); null: in
     * the network's thread, where it must not close the network. The result's cancel(false) drops a work that waits.
     */
    @JvmOverloads
    fun <T> later(work: Work<T>, listener: Listener<T>, executor: Executor? = null): Future<*> {
        val to = executor ?: Executor { it.run() }
        return submit(
            { work.on(this) },
            { result -> to.execute { listener.onResult(result) } },
            { error -> to.execute { listener.onFailure(error) } },
        )
    }

    /** What runs ends with a CancellationException; later runs are not concerned. Does not wait. */
    fun cancel() = synchronized(life) { if (handle != 0L) NativeNetwork.cancel(handle) }

    private fun <T> submit(work: Network.() -> T, done: (T) -> Unit, failed: (Exception) -> Unit): Future<*> {
        check(!worker.isShutdown) { "the network is closed" }
        return worker.submit {
            val result = try {
                work()
            } catch (error: Exception) {
                return@submit failed(error)
            }
            done(result)
        }
    }

    /** Drops works that wait, ends what runs, waits for it and frees the network. Again: does nothing. */
    override fun close() {
        worker.shutdownNow()
        cancel()
        synchronized(lock) {
            synchronized(life) {
                NativeNetwork.destroy(handle)
                handle = 0
            }
        }
    }

    /** A function of a network, for Java. */
    fun interface Work<T> {
        fun on(network: Network): T
    }

    companion object {
        private const val LOW = 2
        private const val HIGH = 3
        private const val MEANS = 4
        private const val DEVIATIONS = 7

        /**
         * Loads an asset. Blocks: a GPU's kernels are compiled and tested on its first start, which takes seconds.
         *
         * @throws IllegalArgumentException there is no such asset, or the packager has compressed it.
         * @throws IllegalStateException a file that is damaged, of a newer version, or no .pbit file.
         */
        @JvmStatic
        @JvmOverloads
        fun load(context: Context, asset: String, options: Options = Options()): Network {
            val file = try {
                context.assets.openFd(asset)
            } catch (error: FileNotFoundException) {
                throw IllegalArgumentException(assetProblem(context, asset), error)
            }
            return file.use {
                load(it.parcelFileDescriptor.fd, it.startOffset, it.length, options, context.cacheDir)
            }
        }

        /** Loads a file. [cacheDirectory] keeps a GPU's programs: the app's Context.getCacheDir(). */
        @JvmStatic
        @JvmOverloads
        fun load(file: File, cacheDirectory: File, options: Options = Options()): Network {
            val descriptor = try {
                ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_ONLY)
            } catch (error: FileNotFoundException) {
                throw IllegalArgumentException("$file: cannot be opened; check the path", error)
            }
            return descriptor.use { load(it.fd, 0, 0, options, cacheDirectory) }
        }

        private fun load(fd: Int, offset: Long, bytes: Long, options: Options, cache: File): Network {
            val (device, threads, cores) = options
            val handle = NativeNetwork.load(fd, offset, bytes, device, threads, cores.ordinal, cache.path)
            return try {
                Network(handle)
            } catch (error: Throwable) {
                NativeNetwork.destroy(handle)
                throw error
            }
        }

        private fun assetProblem(context: Context, asset: String): String = try {
            context.assets.open(asset).close()
            "asset '$asset' is compressed in the APK; add androidResources { noCompress += \"pbit\" } to build.gradle.kts"
        } catch (error: IOException) {
            "asset '$asset' does not exist; put the file into src/main/assets"
        }
    }
}

/** Reads the phone's energy source between [start] and [stop]; one thread at a time. */
class EnergyMeter : AutoCloseable {
    private var handle = NativeNetwork.createMeter()

    /** Begins to read, in a thread of its own. */
    fun start() = NativeNetwork.startMeter(handle)

    /** What flowed since [start]. IllegalStateException where the source moved less than twice meanwhile. */
    fun stop(): Energy {
        val (energyMj, meanMw, seconds) = NativeNetwork.stopMeter(handle)
        return Energy(energyMj, meanMw, seconds)
    }

    override fun close() {
        NativeNetwork.destroyMeter(handle)
        handle = 0
    }
}

/** Of the whole phone, in millijoules and milliwatts. */
data class Energy(val energyMj: Double, val meanMw: Double, val seconds: Double)
