package probes.wire;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/** A record batch (magic 2) written by hand: each field that a probe sets wrong can be set, the rest is right. */
public final class Batch {
    public record Header(byte[] key, byte[] value) { }

    private record Entry(long timestamp, byte[] key, byte[] value, List<Header> headers) { }

    private static final int HEADER_BYTES = 61;
    private static final int CRC_AT = 17;
    private static final int ATTRIBUTES_AT = 21;
    /** Bytes of the header that the batch length counts. */
    private static final int COUNTED_BYTES = 49;

    private final List<Entry> entries = new ArrayList<>();
    private Compression compression = Compression.NONE;
    private long producerId = -1;
    private int producerEpoch = -1;
    private int baseSequence = -1;

    /** What to write instead of the right value. */
    public Integer count, lastOffsetDelta, length, codecId;
    public Long maxTimestamp;
    public byte[] payload;
    public int magic = 2;
    public long baseOffset = 0;
    public boolean wrongCrc, sameOffsetDeltas;

    /** One record per value, without keys, stamped now. */
    public static Batch of(String... values) {
        Batch batch = new Batch();
        for (String value : values) {
            batch.record(System.currentTimeMillis(), null, value);
        }
        return batch;
    }

    /** One record whose value has so many bytes. */
    public static Batch sized(int bytes) {
        Batch batch = new Batch();
        batch.entries.add(new Entry(System.currentTimeMillis(), null, new byte[bytes], List.of()));
        return batch;
    }

    public Batch record(long timestamp, String key, String value, Header... headers) {
        entries.add(new Entry(timestamp, bytes(key), bytes(value), List.of(headers)));
        return this;
    }

    /** As UTF-8; null stays null. */
    public static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    public Batch producer(long id, int epoch, int sequence) {
        producerId = id;
        producerEpoch = epoch;
        baseSequence = sequence;
        return this;
    }

    public Batch compressed(String codec) {
        compression = Compression.of(CompressionType.forName(codec)).build();
        return this;
    }

    public byte[] bytes() {
        long baseTimestamp = entries.isEmpty() ? 0 : entries.get(0).timestamp;
        long latest = entries.stream().mapToLong(Entry::timestamp).max().orElse(-1);
        byte[] records = payload != null ? payload : records(baseTimestamp);
        ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + records.length);
        bytes.putLong(baseOffset).putInt(or(length, COUNTED_BYTES + records.length));
        bytes.putInt(-1).put((byte) magic).putInt(0);
        bytes.putShort((short) or(codecId, compression.type().id));
        bytes.putInt(or(lastOffsetDelta, entries.size() - 1));
        bytes.putLong(baseTimestamp).putLong(maxTimestamp != null ? maxTimestamp : latest);
        bytes.putLong(producerId).putShort((short) producerEpoch).putInt(baseSequence);
        bytes.putInt(or(count, entries.size())).put(records);
        CRC32C crc = new CRC32C();
        crc.update(bytes.array(), ATTRIBUTES_AT, bytes.capacity() - ATTRIBUTES_AT);
        bytes.putInt(CRC_AT, (int) crc.getValue() ^ (wrongCrc ? 1 : 0));
        return bytes.array();
    }

    private static int or(Integer wrong, int right) {
        return wrong != null ? wrong : right;
    }

    private byte[] records(long baseTimestamp) {
        ByteBufferOutputStream bytes = new ByteBufferOutputStream(512);
        try (DataOutputStream out = new DataOutputStream(compression.wrapForOutput(bytes, (byte) 2))) {
            for (int i = 0; i < entries.size(); i++) {
                byte[] one = one(entries.get(i), baseTimestamp, sameOffsetDeltas ? 0 : i);
                varint(out, one.length);
                out.write(one);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        ByteBuffer written = bytes.buffer().flip();
        byte[] copy = new byte[written.remaining()];
        written.get(copy);
        return copy;
    }

    private static byte[] one(Entry entry, long baseTimestamp, int offsetDelta) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeByte(0);
        varint(out, entry.timestamp - baseTimestamp);
        varint(out, offsetDelta);
        blob(out, entry.key);
        blob(out, entry.value);
        varint(out, entry.headers.size());
        for (Header header : entry.headers) {
            blob(out, header.key);
            blob(out, header.value);
        }
        return bytes.toByteArray();
    }

    private static void blob(DataOutputStream out, byte[] bytes) throws IOException {
        varint(out, bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }

    private static void varint(DataOutputStream out, long value) throws IOException {
        long zigzag = (value << 1) ^ (value >> 63);
        while ((zigzag & ~0x7fL) != 0) {
            out.writeByte((int) (zigzag & 0x7f | 0x80));
            zigzag >>>= 7;
        }
        out.writeByte((int) zigzag);
    }
}
