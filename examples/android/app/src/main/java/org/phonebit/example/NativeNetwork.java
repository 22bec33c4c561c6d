package org.phonebit.example;

import java.nio.ByteBuffer;

/**
 * The functions of phonebit_jni.cpp; apps use PhoneBit.kt. A network is a handle: 0 is none, and one that was
 * destroyed must not be used again. One thread at a time for a network. What cannot be is an
 * IllegalArgumentException, other failures are an IllegalStateException, each with PhoneBit's text.
 */
final class NativeNetwork {
    static {
        System.loadLibrary("phonebit_jni");
    }

    private NativeNetwork() {}

    /** The file is `bytes` bytes from `offset` of an open file, which may be closed afterwards. Blocks. */
    static native long load(int fd, long offset, long bytes, String device, String cacheDirectory);

    static native void destroy(long network);

    /** What runs it: "cpu:neon", "gpu:0 Mali-G610". */
    static native String device(long network);

    /** One for each score; empty where the file has none. */
    static native String[] labels(long network);

    /**
     * The scores of a camera frame: planes, strides and size as android.media.Image has them in the format
     * YUV_420_888; crop is {left, top, width, height} or null; rotation is clockwise and makes the frame
     * upright. Buffers are read from their first byte on, whatever their position is.
     */
    static native float[] classify(
            long network,
            int width,
            int height,
            ByteBuffer y,
            ByteBuffer u,
            ByteBuffer v,
            int lumaRowStride,
            int chromaRowStride,
            int chromaPixelStride,
            int[] crop,
            int rotation,
            boolean isMirrored);
}
