package probes;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collection;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.Set;

/**
 * The self-check: what a broker says is made wrong after decoding, one kind of lie per probe, and the probe must
 * notice. Codes that only mean "not yet" stay, so that a probe gets as far as what it is about.
 */
public enum Spoil {
    /** A broker that refuses nothing: each error code becomes 0. */
    REFUSALS,
    /** Offsets and timestamps are one too high, but for those of ListOffsets. */
    OFFSETS,
    /** The same for ListOffsets. */
    LISTED_OFFSETS,
    /** Ports and epochs are one too high. */
    NUMBERS,
    /** Every text differs from what it was. */
    TEXTS,
    /** Fetch brings no records, SyncGroup no assignment. */
    PAYLOAD,
    /** Lists of several entries lose their last. */
    ENTRIES,
    /** A broker that never closes a connection, and that starts with any settings. */
    CLOSING;

    private static final Set<Errors> NOT_YET = EnumSet.of(Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR, Errors.MEMBER_ID_REQUIRED);
    private static final Set<String> OFFSET_FIELDS = Set.of("baseOffset", "highWatermark", "lastStableOffset",
        "logStartOffset", "offset", "timestamp", "committedOffset", "lowWatermark", "endOffset");
    private static final Set<String> NUMBER_FIELDS = Set.of("port", "leaderEpoch", "generationId");
    private static final Set<String> TEXT_FIELDS = Set.of("clusterId", "host", "groupState", "protocolType",
        "metadata");
    private static final short LIST_OFFSETS = 2;

    private static volatile Set<Spoil> planted = Set.of();
    private static int texts;

    /** @param lies none for the truth */
    static void plant(Set<Spoil> lies) {
        planted = lies;
    }

    public static boolean is(Spoil lie) {
        return planted.contains(lie);
    }

    /** Changes a decoded answer, if a lie is planted. */
    public static void answer(Message message, short key) {
        if (planted.isEmpty()) {
            return;
        }
        for (Field field : message.getClass().getDeclaredFields()) {
            boolean linked = field.getName().equals("next") || field.getName().equals("prev");
            if (Modifier.isStatic(field.getModifiers()) || linked) {
                continue;
            }
            try {
                field.setAccessible(true);
                Object value = field.get(message);
                if (value instanceof Message inner) {
                    answer(inner, key);
                } else if (value instanceof Collection<?> list) {
                    list.stream().filter(Message.class::isInstance).forEach(inner -> answer((Message) inner, key));
                    if (is(ENTRIES) && list.size() > 1) {
                        dropLast(list);
                    }
                } else if (value != null) {
                    for (Spoil lie : planted) {
                        value = lie.told(field.getName(), value, key);
                    }
                    field.set(message, value);
                }
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static void dropLast(Collection<?> list) {
        Iterator<?> entries = list.iterator();
        for (int left = list.size(); left > 0; left--) {
            entries.next();
        }
        entries.remove();
    }

    /** What this lie makes of a field's value. */
    private Object told(String name, Object value, short key) {
        boolean isOffset = OFFSET_FIELDS.contains(name) && value instanceof Long;
        return switch (this) {
            case REFUSALS -> name.equals("errorCode") && isRefusal((Short) value) ? (short) 0 : value;
            case OFFSETS -> isOffset && key != LIST_OFFSETS ? (Long) value + 1 : value;
            case LISTED_OFFSETS -> isOffset && key == LIST_OFFSETS ? (Long) value + 1 : value;
            case NUMBERS -> NUMBER_FIELDS.contains(name) && value instanceof Integer ? (Integer) value + 1 : value;
            case TEXTS -> TEXT_FIELDS.contains(name) && value instanceof String ? value + "#" + texts++ : value;
            case PAYLOAD -> value instanceof BaseRecords ? MemoryRecords.EMPTY
                : value instanceof byte[] ? new byte[0] : value;
            case ENTRIES, CLOSING -> value;
        };
    }

    private static boolean isRefusal(short code) {
        return !NOT_YET.contains(Errors.forCode(code));
    }
}
