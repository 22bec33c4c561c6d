package org.phonebit.example;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Drives NativeNetwork as PhoneBit.kt does, in a desktop JVM; test_android_example.py reads what it prints.
 *
 * <p>Arguments: descriptor, offset and bytes of a .pbit file; a file of U, V and Y planes, one after the other, and
 * the arguments of classify() for them: width, height, row strides, chroma's pixel stride, rotation, mirror,
 * left, top, width and height of the crop.
 */
final class FrameClassifier {
    private static int[] numbers;

    private FrameClassifier() {}

    private interface Action {
        void run();
    }

    private static void refused(String what, Action action) {
        try {
            action.run();
            System.out.println(what + ": accepted");
        } catch (IllegalArgumentException | IllegalStateException error) {
            System.out.println(what + ": " + error.getClass().getSimpleName() + ": " + error.getMessage());
        }
    }

    private static ByteBuffer direct(byte[] bytes, int begin, int end) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(end - begin);
        buffer.put(bytes, begin, end - begin);
        return buffer;
    }

    private static float[] classify(long network, ByteBuffer y, ByteBuffer u, ByteBuffer v, int rotation, int[] crop) {
        return NativeNetwork.classify(
                network, numbers[0], numbers[1], y, u, v, numbers[2], numbers[3], numbers[4], crop, rotation,
                numbers[6] != 0);
    }

    public static void main(String[] arguments) throws Exception {
        int descriptor = Integer.parseInt(arguments[0]);
        long offset = Long.parseLong(arguments[1]);
        long bytes = Long.parseLong(arguments[2]);
        byte[] frame = Files.readAllBytes(Path.of(arguments[3]));
        numbers = Arrays.stream(arguments).skip(4).mapToInt(Integer::parseInt).toArray();
        int[] crop = Arrays.copyOfRange(numbers, 7, 11);
        String cache = System.getProperty("java.io.tmpdir");

        long network = NativeNetwork.load(descriptor, offset, bytes, "cpu", cache);
        System.out.println("device: " + NativeNetwork.device(network));
        System.out.println("labels: " + String.join(",", NativeNetwork.labels(network)));

        int luma = (numbers[1] - 1) * numbers[2] + numbers[0];
        int chroma = (frame.length - luma) / 2;
        ByteBuffer u = direct(frame, 0, chroma);
        ByteBuffer v = direct(frame, chroma, 2 * chroma);
        ByteBuffer y = direct(frame, 2 * chroma, frame.length);
        for (int pass = 0; pass < 3; ++pass) {
            System.out.print("scores:");
            for (float score : classify(network, y, u, v, numbers[5], crop)) {
                System.out.printf(" %08x", Float.floatToRawIntBits(score));
            }
            System.out.println();
        }
        System.out.println("whole: " + classify(network, y, u, v, numbers[5], null).length);

        refused("heap", () -> classify(network, ByteBuffer.wrap(frame), u, v, 0, crop));
        refused("null", () -> classify(network, y, null, v, 0, crop));
        refused("short", () -> classify(network, y, u, direct(frame, 0, chroma - 1), 0, crop));
        refused("rotation", () -> classify(network, y, u, v, 45, crop));
        refused("crop", () -> classify(network, y, u, v, 0, new int[] {0, 0, numbers[0] + 1, 1}));
        refused("crop length", () -> classify(network, y, u, v, 0, new int[] {0, 0, 1}));
        refused("stride", () -> NativeNetwork.classify(network, 2, 2, y, u, v, 2, 0, 1, crop, 0, false));
        refused("size", () -> NativeNetwork.classify(network, -2, 2, y, u, v, 2, 1, 1, crop, 0, false));
        refused("descriptor", () -> NativeNetwork.load(-1, 0, 0, "cpu", cache));
        refused("file", () -> NativeNetwork.load(descriptor, 0, offset, "cpu", cache));
        refused("device", () -> NativeNetwork.load(descriptor, offset, bytes, "toaster", cache));
        refused("text", () -> NativeNetwork.load(descriptor, offset, bytes, null, cache));
        NativeNetwork.destroy(network);
        refused("closed", () -> classify(0, y, u, v, 0, crop));
        System.out.println("done");
    }
}
