package android.graphics;

import java.nio.Buffer;
import java.nio.ByteBuffer;

/** Red, green, blue and alpha of each pixel, as ARGB_8888 has them in memory. */
public final class Bitmap {
    public enum Config {
        ARGB_8888,
        RGB_565
    }

    private final int width;
    private final int height;
    private final Config config;
    private final byte[] pixels;

    private Bitmap(int width, int height, Config config) {
        this.width = width;
        this.height = height;
        this.config = config;
        this.pixels = new byte[4 * width * height];
    }

    public static Bitmap createBitmap(int width, int height, Config config) {
        return new Bitmap(width, height, config);
    }

    public int getWidth() {
        return width;
    }

    public int getHeight() {
        return height;
    }

    public Config getConfig() {
        return config;
    }

    public void copyPixelsToBuffer(Buffer to) {
        ((ByteBuffer) to).put(pixels);
    }

    public void copyPixelsFromBuffer(Buffer from) {
        ((ByteBuffer) from).get(pixels);
    }
}
