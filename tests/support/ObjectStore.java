import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** `s3a` for a cluster in tests, which have no hadoop-aws: objects by plain requests, each with the caller's key id. */
public class ObjectStore extends FileSystem {
    private static final Pattern ENTRY = Pattern.compile(
        "<Contents>.*?<Key>(.*?)</Key>.*?<Size>(\\d+)</Size>.*?</Contents>|<CommonPrefixes><Prefix>(.*?)/</Prefix>",
        Pattern.DOTALL);
    private static final Pattern NEXT = Pattern.compile("<NextContinuationToken>(.*?)</NextContinuationToken>");
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private URI uri;
    private String endpoint;

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        setConf(conf);
        uri = URI.create(name.getScheme() + "://" + name.getAuthority());
        endpoint = conf.get("fs.s3a.bucket." + name.getAuthority() + ".endpoint", conf.get("fs.s3a.endpoint"));
    }

    @Override
    public String getScheme() {
        return "s3a";
    }

    @Override
    public URI getUri() {
        return uri;
    }

    @Override
    public Path getWorkingDirectory() {
        return new Path(uri + "/");
    }

    @Override
    public void setWorkingDirectory(Path path) {}

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
        String key = key(path);
        if (!key.isEmpty()) {
            HttpResponse<byte[]> found = send(request(key, "").method("HEAD", BodyPublishers.noBody()), path, 404);
            if (found.statusCode() == 200) {
                return file(key, found.headers().firstValueAsLong("Content-Length").orElse(0));
            }
        }
        if (!key.isEmpty() && list(key + "/", false).isEmpty()) {
            throw new FileNotFoundException(path.toString());
        }
        return new FileStatus(0, true, 1, 1, 0, qualified(key));
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
        FileStatus self = getFileStatus(path);
        String key = key(path);
        return self.isFile() ? new FileStatus[] {self}
            : list(key.isEmpty() ? "" : key + "/", true).toArray(new FileStatus[0]);
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        return new FSDataInputStream(new Ranges(path, getFileStatus(path).getLen()));
    }

    @Override
    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int bufferSize,
            short replication, long blockSize, Progressable progress) throws IOException {
        return new FSDataOutputStream(new ByteArrayOutputStream() {
            @Override
            public void close() throws IOException {
                send(request(key(path), "").PUT(BodyPublishers.ofByteArray(buf, 0, count)), path, 200);
            }
        }, null);
    }

    @Override
    public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
        throw new UnsupportedOperationException("append");
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        FileStatus source = getFileStatus(from);
        String start = key(from);
        for (FileStatus each : source.isFile() ? List.of(source) : list(start + "/", false)) {
            String key = key(each.getPath());
            String address = "/" + uri.getAuthority() + "/" + encoded(key);
            HttpRequest.Builder copy = request(key(to) + key.substring(start.length()), "");
            send(copy.header("x-amz-copy-source", address).PUT(BodyPublishers.noBody()), from, 200);
        }
        return delete(from, true);
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        for (FileStatus each : list(key(path) + "/", false)) {
            send(request(key(each.getPath()), "").DELETE(), path, 204);
        }
        send(request(key(path), "").DELETE(), path, 204);
        return true;
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) {
        return true;
    }

    private List<FileStatus> list(String prefix, boolean isFlat) throws IOException {
        List<FileStatus> found = new ArrayList<>();
        String token = "";
        do {
            String query = "?list-type=2&prefix=" + URLEncoder.encode(prefix, StandardCharsets.UTF_8)
                + (isFlat ? "&delimiter=%2F" : "")
                + (token.isEmpty() ? "" : "&continuation-token=" + URLEncoder.encode(token, StandardCharsets.UTF_8));
            byte[] body = send(request("", query).GET(), new Path(uri + "/"), 200).body();
            String answer = new String(body, StandardCharsets.UTF_8);
            Matcher entry = ENTRY.matcher(answer);
            while (entry.find()) {
                found.add(entry.group(1) == null ? new FileStatus(0, true, 1, 1, 0, qualified(entry.group(3)))
                    : file(entry.group(1), Long.parseLong(entry.group(2))));
            }
            Matcher next = NEXT.matcher(answer);
            token = next.find() ? next.group(1) : "";
        } while (!token.isEmpty());
        return found;
    }

    private FileStatus file(String key, long size) {
        return new FileStatus(size, false, 1, 64 << 20, 0, qualified(key));
    }

    private Path qualified(String key) {
        return new Path(uri.getScheme(), uri.getAuthority(), "/" + key);
    }

    private String key(Path path) {
        return path.toUri().getPath().replaceFirst("^/+", "").replaceFirst("/+$", "");
    }

    private static String encoded(String key) {
        return URLEncoder.encode(key, StandardCharsets.UTF_8).replace("+", "%20").replace("%2F", "/");
    }

    private HttpRequest.Builder request(String key, String query) {
        String address = endpoint + "/" + uri.getAuthority() + "/" + encoded(key) + query;
        String owner = "AWS4-HMAC-SHA256 Credential=" + System.getenv("AWS_ACCESS_KEY_ID")
            + "/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        return HttpRequest.newBuilder(URI.create(address)).header("Authorization", owner);
    }

    private HttpResponse<byte[]> send(HttpRequest.Builder request, Path path, int other) throws IOException {
        try {
            HttpResponse<byte[]> answer = client.send(request.build(), BodyHandlers.ofByteArray());
            if (answer.statusCode() == 403) {
                throw new AccessDeniedException(path.toString());
            }
            if (answer.statusCode() / 100 != 2 && answer.statusCode() != other) {
                throw new IOException(path + ": " + answer.statusCode());
            }
            return answer;
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
    }

    private class Ranges extends FSInputStream {
        private static final int BLOCK = 1 << 16;
        private final Path path;
        private final long size;
        private long at;
        private long heldFrom = -1;
        private byte[] held;

        Ranges(Path path, long size) {
            this.path = path;
            this.size = size;
        }

        @Override
        public void seek(long position) {
            at = position;
        }

        @Override
        public long getPos() {
            return at;
        }

        @Override
        public boolean seekToNewSource(long position) {
            return false;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            if (at >= size) {
                return -1;
            }
            // A small read fetches the block around it, as the real client reads ahead.
            boolean isSmall = length < BLOCK;
            long from = isSmall ? at - at % BLOCK : at;
            if (isSmall && from != heldFrom) {
                held = fetch(from, BLOCK);
                heldFrom = from;
            }
            byte[] body = isSmall ? held : fetch(at, length);
            int start = (int) (at - from);
            int count = Math.min(length, body.length - start);
            System.arraycopy(body, start, into, offset, count);
            at += count;
            return count;
        }

        private byte[] fetch(long from, int length) throws IOException {
            String range = "bytes=" + from + "-" + (Math.min(from + length, size) - 1);
            return send(request(key(path), "").header("Range", range).GET(), path, 206).body();
        }
    }
}
