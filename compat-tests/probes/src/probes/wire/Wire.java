package probes.wire;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import probes.Spoil;
import probes.Wrong;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;

/** One plain blocking connection: any API key in any version, pipelined or not, and bytes that are no request. */
public final class Wire implements AutoCloseable {
    private static final int CONNECT_MS = 5_000;
    private static final int ANSWER_MS = 20_000;
    private static final int ANSWER_BYTES_MAX = 200_000_000;

    /** How a connection came to its end, or that it did not. */
    public enum End {
        /** In order: everything read, then FIN. */
        CLOSED, RESET, OPEN, DATA
    }

    private record Awaited(short key, short version, int correlation) { }

    private final Socket socket;
    private final DataInputStream in;
    private final OutputStream out;
    private final ArrayDeque<Awaited> awaited = new ArrayDeque<>();
    private int correlation = 1;

    private Wire(Socket socket) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(ANSWER_MS);
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
        out = socket.getOutputStream();
    }

    public static Wire open(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        Socket socket = new Socket();
        int port = Integer.parseInt(address.substring(colon + 1));
        socket.connect(new InetSocketAddress(address.substring(0, colon), port), CONNECT_MS);
        return new Wire(socket);
    }

    /** How long to wait for an answer from now on. */
    public Wire patience(int milliseconds) throws IOException {
        socket.setSoTimeout(milliseconds);
        return this;
    }

    /** Sends a request and returns its answer; its type is that of the request's API. */
    public <T extends ApiMessage> T call(ApiMessage request, int version) throws IOException {
        send(request, version);
        return receive();
    }

    /** Sends without waiting; {@link #receive} returns the answers in order. */
    public void send(ApiMessage request, int version) throws IOException {
        ApiMessageType api = ApiMessageType.fromApiKey(request.apiKey());
        byte[] header = header(request.apiKey(), version, correlation, api.requestHeaderVersion((short) version));
        awaited.add(new Awaited(request.apiKey(), (short) version, correlation++));
        raw(sized(concat(header, encoded(request, version))));
    }

    public void raw(byte[] bytes) throws IOException {
        out.write(bytes);
        out.flush();
    }

    /** The next answer; it must be the one whose turn it is, and whole. */
    @SuppressWarnings("unchecked")
    public <T extends ApiMessage> T receive() throws IOException {
        Awaited next = awaited.remove();
        return (T) decode(frame(), next.key, next.version, next.correlation);
    }

    /** The next frame, without its length. */
    public ByteBuffer frame() throws IOException {
        try {
            int size = in.readInt();
            if (size < 0 || size > ANSWER_BYTES_MAX) {
                throw new Wrong("an answer claims to have " + size + " bytes");
            }
            byte[] bytes = new byte[size];
            in.readFully(bytes);
            return ByteBuffer.wrap(bytes);
        } catch (EOFException | SocketException e) {
            throw new Gone();
        }
    }

    /** The broker closed the connection instead of answering. */
    public static final class Gone extends IOException {
        Gone() {
            super("the broker closed the connection");
        }
    }

    public static ApiMessage decode(ByteBuffer frame, short key, short version, int correlation) {
        ApiMessageType api = ApiMessageType.fromApiKey(key);
        ByteBufferAccessor bytes = new ByteBufferAccessor(frame);
        ResponseHeaderData header = new ResponseHeaderData(bytes, api.responseHeaderVersion(version));
        if (header.correlationId() != correlation) {
            throw new Wrong("answers out of order: correlation id " + header.correlationId() + " instead of "
                + correlation);
        }
        ApiMessage answer = api.newResponse();
        answer.read(bytes, version);
        if (frame.hasRemaining()) {
            throw new Wrong(frame.remaining() + " bytes too many after " + api + " v" + version);
        }
        Spoil.answer(answer, key);
        return answer;
    }

    public boolean closes(int milliseconds) throws IOException {
        End end = end(milliseconds);
        return end == End.CLOSED || end == End.RESET;
    }

    /** What comes within so many milliseconds. */
    public End end(int milliseconds) throws IOException {
        int before = socket.getSoTimeout();
        socket.setSoTimeout(milliseconds);
        try {
            in.mark(1);
            if (in.read() < 0) {
                return Spoil.is(Spoil.CLOSING) ? End.OPEN : End.CLOSED;
            }
            in.reset();
            return End.DATA;
        } catch (SocketTimeoutException e) {
            return End.OPEN;
        } catch (SocketException e) {
            return Spoil.is(Spoil.CLOSING) ? End.OPEN : End.RESET;
        } finally {
            socket.setSoTimeout(before);
        }
    }

    public static byte[] header(int key, int version, int correlation, int headerVersion) {
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey((short) key)
            .setRequestApiVersion((short) version).setCorrelationId(correlation).setClientId("probe");
        return encoded(header, headerVersion);
    }

    private static byte[] encoded(org.apache.kafka.common.protocol.Message message, int version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, (short) version));
        message.write(new ByteBufferAccessor(bytes), cache, (short) version);
        return bytes.array();
    }

    /** A frame: its length, then its bytes. */
    public static byte[] sized(byte[] bytes) {
        return concat(ByteBuffer.allocate(4).putInt(bytes.length).array(), bytes);
    }

    public static byte[] concat(byte[] first, byte[] second) {
        return ByteBuffer.allocate(first.length + second.length).put(first).put(second).array();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
