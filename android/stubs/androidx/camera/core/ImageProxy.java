package androidx.camera.core;

import android.graphics.Rect;
import java.nio.ByteBuffer;

public interface ImageProxy extends AutoCloseable {
    interface PlaneProxy {
        ByteBuffer getBuffer();

        int getRowStride();

        int getPixelStride();
    }

    int getFormat();

    int getWidth();

    int getHeight();

    PlaneProxy[] getPlanes();

    Rect getCropRect();

    ImageInfo getImageInfo();

    @Override
    void close();
}
