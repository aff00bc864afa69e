package compat;

import static compat.Kit.await;
import static compat.Kit.check;
import static compat.Kit.equal;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;

/** Batches, and streams that stop, resume from their checkpoint and outlive the broker; all in this process. */
public final class Spark {
    private static SparkSession spark;
    private static Path room;

    public static void main(String[] args) throws Exception {
        Kit.bootstrap = args[0];
        room = Files.createTempDirectory(Path.of(System.getenv("WORK")), "spark");
        spark = SparkSession.builder().master("local[2]").appName("compat").config("spark.ui.enabled", false)
            .config("spark.sql.shuffle.partitions", 2).config("spark.sql.warehouse.dir", room.toString()).getOrCreate();
        String in = Kit.topic(3);
        send(in, 0, 1000);
        batches(in);
        streams(in);
        System.exit(Kit.failed == 0 ? 0 : 1);
    }

    private static void batches(String in) throws Exception {
        check("batch-reads-all", () -> {
            Row row = read(in).selectExpr("count(*)", "sum(cast(cast(value as string) as long))",
                "count(distinct partition)", "min(offset)").first();
            equal(List.of(1000L, 499500L, 3L, 0L), List.of(row.get(0), row.get(1), row.get(2), row.get(3)));
        });
        check("batch-reads-by-offset", () -> equal(30L, read(in,
            "startingOffsets", "{\"" + in + "\":{\"0\":10,\"1\":10,\"2\":10}}",
            "endingOffsets", "{\"" + in + "\":{\"0\":20,\"1\":20,\"2\":20}}").count()));
        check("batch-reads-by-time", () -> {
            equal(1000L, read(in, "startingTimestamp", "1000").count());
            equal(0L, read(in, "startingTimestamp", "1000", "endingTimestamp", "2000").count());
        });
        String out = Kit.topic(2);
        check("batch-writes", () -> {
            read(in).selectExpr("key", "concat('b', cast(value as string)) as value").write().format("kafka")
                .option("kafka.bootstrap.servers", Kit.bootstrap).option("topic", out).save();
            List<String> written = Kit.values(Kit.readAll(out));
            equal(1000, written.size());
            equal(values("b", 0, 1000), new TreeSet<>(written));
        });
    }

    private static void streams(String in) throws Exception {
        String out = Kit.topic(2);
        check("stream-reads-and-writes", () -> {
            StreamingQuery query = copy(in, out, Trigger.ProcessingTime(200));
            // it takes 200 a round: this is in the middle
            await("some copies", () -> running(query) && written(out).size() >= 400);
            query.stop();
        });
        check("stream-resumes-from-its-checkpoint", () -> {
            send(in, 1000, 1500);
            StreamingQuery query = copy(in, out, Trigger.ProcessingTime(200));
            await("all copies", () -> running(query) && written(out).equals(values("s", 0, 1500)));
            query.stop();
        });
        for (String how : new String[] {"term", "kill"}) {
            int before = how.equals("term") ? 1500 : 1600;
            check("stream-outlives-" + how, () -> {
                StreamingQuery query = copy(in, out, Trigger.ProcessingTime(200));
                Kit.broker(how);
                send(in, before, before + 100);
                await("all copies", () -> running(query) && written(out).equals(values("s", 0, before + 100)));
                query.stop();
            });
        }
        check("stream-ends-with-what-is-available", () -> {
            StreamingQuery query = copy(in, out, Trigger.AvailableNow());
            equal(true, query.awaitTermination(Kit.PATIENCE_MS));
            running(query);
            equal(values("s", 0, 1700), written(out));
        });
        check("stream-counts-with-state", () -> {
            StreamingQuery query = start("count", Trigger.AvailableNow(), stream(in).selectExpr("cast(value as int) % 5 as k")
                .groupBy("k").count().writeStream().format("memory").queryName("counts").outputMode("complete"));
            equal(true, query.awaitTermination(Kit.PATIENCE_MS));
            running(query);
            equal("340,340,340,340,340", spark.sql("select count from counts order by k").collectAsList().stream()
                .map(row -> String.valueOf(row.getLong(0))).collect(Collectors.joining(",")));
        });
    }

    /** True, or what ended it. */
    private static boolean running(StreamingQuery query) {
        if (query.exception().isDefined()) throw new AssertionError(query.exception().get());
        return true;
    }

    private static Dataset<Row> read(String topic, String... options) {
        DataFrameReader reader = spark.read().format("kafka").option("kafka.bootstrap.servers", Kit.bootstrap)
            .option("subscribe", topic);
        for (int at = 0; at < options.length; at += 2) reader = reader.option(options[at], options[at + 1]);
        return reader.load();
    }

    private static Dataset<Row> stream(String topic) {
        return spark.readStream().format("kafka").option("kafka.bootstrap.servers", Kit.bootstrap).option("subscribe", topic)
            .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 200).load()
            .selectExpr("key", "cast(value as string) as value");
    }

    /** Always from the same checkpoint; the sink writes at least once. */
    private static StreamingQuery copy(String in, String out, Trigger trigger) throws Exception {
        return start("copy", trigger, stream(in).selectExpr("key", "concat('s', value) as value").writeStream().format("kafka")
            .option("kafka.bootstrap.servers", Kit.bootstrap).option("topic", out));
    }

    private static StreamingQuery start(String checkpoint, Trigger trigger, DataStreamWriter<Row> writer) throws Exception {
        return writer.option("checkpointLocation", room.resolve(checkpoint).toString()).trigger(trigger).start();
    }

    private static void send(String topic, int from, int to) {
        try (Producer<String, String> producer = Kit.producer()) {
            for (int i = from; i < to; i++) producer.send(new ProducerRecord<>(topic, String.valueOf(i), String.valueOf(i)));
        }
    }

    private static TreeSet<String> values(String prefix, int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> prefix + i).collect(Collectors.toCollection(TreeSet::new));
    }

    private static TreeSet<String> written(String topic) {
        return new TreeSet<>(Kit.values(Kit.readAll(topic)));
    }
}
