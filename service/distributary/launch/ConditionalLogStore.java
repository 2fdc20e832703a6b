package distributary;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

import io.delta.storage.S3SingleDriverLogStore;

/**
 * Writes a commit to S3 only if its version is not there yet: of two drivers one gets FileAlreadyExistsException.
 * Delta's own store checks first and then writes, so that the later of two commits replaces the earlier one.
 */
public class ConditionalLogStore extends S3SingleDriverLogStore {

    /** Hadoop's option of a file, and the capability of a store that has it. */
    private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

    public ConditionalLogStore(Configuration configuration) {
        super(configuration);
    }

    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        FileSystem store = path.getFileSystem(configuration);
        if (overwrite.booleanValue() || !store.hasPathCapability(path, IF_ABSENT)) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        if (store.exists(path)) { // also where a store does not know the condition, as Delta does it
            throw new FileAlreadyExistsException(path.toString());
        }
        byte[] content = bytesOf(actions);
        try {
            FSDataOutputStreamBuilder file = store.createFile(path);
            file.create();
            file.must(IF_ABSENT, "true");
            FSDataOutputStream stream = (FSDataOutputStream) file.build();
            stream.write(content);
            stream.close(); // the request is made here
        } catch (IOException error) {
            byte[] found = contentOf(store, path);
            if (found == null) {
                throw error;
            }
            if (!Arrays.equals(found, content)) {
                FileAlreadyExistsException lost = new FileAlreadyExistsException(path.toString());
                lost.initCause(error);
                throw lost;
            }
            // The store has made this commit, and its answer was lost: a commit holds an identity of its own.
        }
    }

    private static byte[] bytesOf(Iterator<String> actions) throws IOException {
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            lines.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
            lines.write('\n');
        }
        return lines.toByteArray();
    }

    /** What the file holds; null if there is none. */
    private static byte[] contentOf(FileSystem store, Path path) throws IOException {
        if (!store.exists(path)) {
            return null;
        }
        InputStream stream = store.open(path);
        try {
            return stream.readAllBytes();
        } finally {
            stream.close();
        }
    }
}
