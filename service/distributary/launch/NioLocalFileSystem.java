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

        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) { // which Java can't set
                super.setPermission(path, permission);
                return;
            }
            try {
                Files.setPosixFilePermissions(
                    pathToFile(path).toPath(),
                    PosixFilePermissions.fromString(
                        symbol(permission.getUserAction())
                            + symbol(permission.getGroupAction())
                            + symbol(permission.getOtherAction())));
            } catch (UnsupportedOperationException noPosix) {
                super.setPermission(path, permission);
            }
        }

        private static String symbol(FsAction action) {
            return action.SYMBOL;
        }
    }
}
