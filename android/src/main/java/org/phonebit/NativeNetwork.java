package org.phonebit;

import java.nio.ByteBuffer;

/**
 * The functions of phonebit_jni.cpp; apps use {@link Network}. A network is a handle: 0 is none, and one that was
 * destroyed must not be used again. One thread at a time for a network, but for cancel. What cannot be is an
 * IllegalArgumentException, a cancelled run a CancellationException, other failures are an IllegalStateException, each
 * with PhoneBit's text.
 */
final class NativeNetwork {
    static {
        System.loadLibrary("phonebit_jni");
    }

    private NativeNetwork() {}

    /** The file is `bytes` bytes from `offset` of an open file, which may be closed afterwards. Blocks. */
    static native long load(
            int fd, long offset, long bytes, String device, int threads, int cores, String cacheDirectory);

    static native void destroy(long network);

    /** What runs it: "cpu:neon", "gpu:0 Mali-G610". */
    static native String device(long network);

    /** Of the first output's channels or of its boxes' classes; empty where the file has none. */
    static native String[] labels(long network);

    /** The layers' names in the order of {@link #profile}. */
    static native String[] layers(long network);

    /** Height, width and channels of the only input, then of the first output. */
    static native int[] shapes(long network);

    /** Widths and heights of YOLOv2's anchors in cells of the output; empty where the file says nothing of boxes. */
    static native float[] anchors(long network);

    /**
     * How the file prepares an image: how it is resized (0 stretched, 1 by its shorter side, 2 in a letterbox), pixels
     * of the shorter side, values of levels 0 and 255, then three means and three deviations.
     */
    static native double[] rule(long network);

    /**
     * The first output for an image: format as in phonebit_c.h; of each plane its buffer, read from the first byte on,
     * row stride and pixel stride in bytes; crop is {left, top, width, height} or null; rotation is clockwise and makes
     * the image upright.
     */
    static native float[] run(
            long network,
            int format,
            int width,
            int height,
            ByteBuffer[] planes,
            int[] strides,
            int[] crop,
            int rotation,
            boolean isMirrored);

    /** Ends what runs. Any thread. */
    static native void cancel(long network);

    /** Milliseconds of each layer on the image of the last run: medians of `repeats`. */
    static native double[] profile(long network, int repeats);

    /** A meter of the best source of energy readings; throws where there is none. */
    static native long createMeter();

    static native void startMeter(long meter);

    /** Millijoules, mean milliwatts and seconds since the start. */
    static native double[] stopMeter(long meter);

    static native void destroyMeter(long meter);
}
