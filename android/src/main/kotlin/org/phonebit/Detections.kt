package org.phonebit

import kotlin.math.exp
import kotlin.math.max
import kotlin.math.min
import kotlin.math.tanh

/**
 * One thing in an image. Sides are pixels of the upright image; (0, 0) is its upper left corner.
 *
 * @property score objectness times class probability, 0..1.
 */
data class Detection(
    val index: Int,
    val label: String,
    val score: Float,
    val left: Float,
    val top: Float,
    val right: Float,
    val bottom: Float,
)

/** Left, top, right and bottom of a box in parts of the input, and how sure the network is of a class there. */
private class Candidate(val box: DoubleArray, val score: Double, val index: Int)

/** YOLOv2's boxes, as docs/detection.md has the formulas. */
internal class BoxDecoder(private val anchors: FloatArray, private val shape: IntArray) {
    private val anchorCount = anchors.size / 2
    private val classes = shape[2] / max(1, anchorCount) - BOX_NUMBERS

    /** Boxes of all classes in parts of the input, best first; of those of a class that overlap the best one. */
    fun decode(output: FloatArray, minScore: Double, maxOverlap: Double): List<Triple<DoubleArray, Double, Int>> =
        candidates(output, minScore)
            .groupBy { it.index }
            .values
            .flatMap { suppressed(it, maxOverlap) }
            .sortedWith(compareByDescending<Candidate> { it.score }.thenBy { it.index })
            .map { Triple(it.box, it.score, it.index) }

    private fun candidates(output: FloatArray, minScore: Double): List<Candidate> {
        val (rows, columns) = shape
        val found = ArrayList<Candidate>()
        val powers = DoubleArray(classes)
        for (place in 0 until rows * columns * anchorCount) {
            val from = place * (BOX_NUMBERS + classes)
            val scores = from + BOX_NUMBERS
            val largest = (0 until classes).maxOf { output[scores + it].toDouble() }
            for (c in 0 until classes) powers[c] = exp(output[scores + c] - largest)
            val objectness = sigmoid(output[from + 4].toDouble()) / powers.sum()
            for (c in 0 until classes) {
                val score = objectness * powers[c]
                if (score >= minScore) found += Candidate(box(output, from, place, rows, columns), score, c)
            }
        }
        return found
    }

    private fun box(output: FloatArray, from: Int, place: Int, rows: Int, columns: Int): DoubleArray {
        val anchor = place % anchorCount
        val cell = place / anchorCount
        val x = (cell % columns + sigmoid(output[from].toDouble())) / columns
        val y = (cell / columns + sigmoid(output[from + 1].toDouble())) / rows
        val width = anchors[2 * anchor] * exp(min(output[from + 2].toDouble(), MAX_EXPONENT)) / columns
        val height = anchors[2 * anchor + 1] * exp(min(output[from + 3].toDouble(), MAX_EXPONENT)) / rows
        return doubleArrayOf(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    }

    private fun suppressed(ofClass: List<Candidate>, maxOverlap: Double): List<Candidate> {
        val kept = ArrayList<Candidate>()
        for (candidate in ofClass.sortedByDescending { it.score }) {
            if (kept.all { overlap(it.box, candidate.box) <= maxOverlap }) kept += candidate
        }
        return kept
    }

    private companion object {
        const val BOX_NUMBERS = 5
        const val MAX_EXPONENT = 50.0

        fun sigmoid(x: Double) = 0.5 * (1 + tanh(x / 2))

        fun area(box: DoubleArray) = max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])

        /** Intersection over union. */
        fun overlap(a: DoubleArray, b: DoubleArray): Double {
            val width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
            val height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
            val union = area(a) + area(b) - width * height
            return if (union > 0) width * height / union else 0.0
        }
    }
}

/** Where an image lies in a network's input: resized as a whole, then cut or surrounded. */
internal class Placement(image: Pair<Int, Int>, input: Pair<Int, Int>, resize: Int, resizeTo: Int) {
    private val scaled: Pair<Int, Int> = when (resize) {
        SHORTER_SIDE -> {
            val shorter = min(image.first, image.second).toLong()
            (image.first * resizeTo.toLong() / shorter).toInt() to (image.second * resizeTo.toLong() / shorter).toInt()
        }
        LETTERBOX -> {
            val ratio = min(input.first.toDouble() / image.first, input.second.toDouble() / image.second)
            side(image.first, ratio, input.first) to side(image.second, ratio, input.second)
        }
        else -> input
    }
    private val corner: Pair<Int, Int> = when (resize) {
        SHORTER_SIDE -> -halfToEven(scaled.first - input.first) to -halfToEven(scaled.second - input.second)
        else -> (input.first - scaled.first) / 2 to (input.second - scaled.second) / 2
    }
    private val size = image
    private val inputSize = input

    /** A box in parts of the input, in pixels of the image and cut at its border. */
    fun toImage(box: DoubleArray) = DoubleArray(4) { i ->
        val isX = i % 2 == 0
        val whole = if (isX) inputSize.first else inputSize.second
        val from = if (isX) corner.first else corner.second
        val imageSide = if (isX) size.first else size.second
        val ratio = imageSide.toDouble() / if (isX) scaled.first else scaled.second
        ((box[i] * whole - from) * ratio).coerceIn(0.0, imageSide.toDouble())
    }

    private companion object {
        const val SHORTER_SIDE = 1
        const val LETTERBOX = 2

        fun side(side: Int, ratio: Double, limit: Int) = min(limit, max(1, Math.rint(side * ratio).toInt()))

        fun halfToEven(value: Int) = value / 2 + if (value % 2 == 0) 0 else value / 2 % 2
    }
}
