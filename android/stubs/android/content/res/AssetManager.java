package android.content.res;

import java.io.IOException;
import java.io.InputStream;

public abstract class AssetManager {
    public abstract AssetFileDescriptor openFd(String name) throws IOException;

    public abstract InputStream open(String name) throws IOException;
}
