package android.content.res;

import android.os.ParcelFileDescriptor;
import java.io.Closeable;

public class AssetFileDescriptor implements Closeable {
    private final ParcelFileDescriptor file;
    private final long startOffset;
    private final long length;

    public AssetFileDescriptor(ParcelFileDescriptor file, long startOffset, long length) {
        this.file = file;
        this.startOffset = startOffset;
        this.length = length;
    }

    public ParcelFileDescriptor getParcelFileDescriptor() {
        return file;
    }

    public long getStartOffset() {
        return startOffset;
    }

    public long getLength() {
        return length;
    }

    @Override
    public void close() {
        file.close();
    }
}
