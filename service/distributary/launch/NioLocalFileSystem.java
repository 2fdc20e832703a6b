package distributary;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, which sets permissions by Java. Where its native library is missing, Hadoop starts a
 * process (chmod) for each file that it creates.
 */
public class NioLocalFileSystem extends LocalFileSystem {

    public NioLocalFileSystem() {
        super(new Raw());
    }

    /** The same without checksums. */
    public static class Raw extends RawLocalFileSystem {

        /** Set user ID, set group ID, sticky. */
        private static final int SPECIAL_BITS = 07000;

        public void setPermission(Path path, FsPermission permission) throws IOException {
            java.nio.file.Path file = pathToFile(path).toPath();
            try {
                // Java can't set these three bits, and removes them: chmod leaves a directory its group's bit.
                int mode = ((Integer) Files.getAttribute(file, "unix:mode")).intValue();
                if (permission.getStickyBit() || (mode & SPECIAL_BITS) != 0) {
                    super.setPermission(path, permission);
                    return;
                }
                Files.setPosixFilePermissions(
                    file,
                    PosixFilePermissions.fromString(
                        symbol(permission.getUserAction())
                            + symbol(permission.getGroupAction())
                            + symbol(permission.getOtherAction())));
            } catch (UnsupportedOperationException noUnix) {
                super.setPermission(path, permission);
            } catch (IllegalArgumentException noUnix) {
                super.setPermission(path, permission);
            }
        }

        private static String symbol(FsAction action) {
            return action.SYMBOL;
        }
    }
}
