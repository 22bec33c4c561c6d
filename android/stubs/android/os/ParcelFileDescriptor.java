package android.os;

import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Field;

/** On a desktop: an open file whose number a JVM tells by --add-opens java.base/java.io=ALL-UNNAMED alone. */
public class ParcelFileDescriptor implements Closeable {
    public static final int MODE_READ_ONLY = 0x10000000;

    private final FileInputStream stream;

    private ParcelFileDescriptor(FileInputStream stream) {
        this.stream = stream;
    }

    public static ParcelFileDescriptor open(File file, int mode) throws FileNotFoundException {
        return new ParcelFileDescriptor(new FileInputStream(file));
    }

    public int getFd() {
        try {
            Field field = FileDescriptor.class.getDeclaredField("fd");
            field.setAccessible(true);
            return field.getInt(stream.getFD());
        } catch (ReflectiveOperationException | IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void close() {
        try {
            stream.close();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
