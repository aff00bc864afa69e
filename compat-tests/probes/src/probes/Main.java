package probes;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

import probes.cases.*;

/** `HOST:PORT [--only C001,C011] [--self-check]`: runs the probes, prints a line for each, tells by the exit code. */
public final class Main {
    /** Every class with probes; one that is not here does not run. */
    private static final List<Class<?>> FAMILIES = List.of(ApiVersionsProbes.class, BadInputProbes.class,
        ClusterProbes.class, CommitProbes.class, CompactionProbes.class, CompressionProbes.class, ConfigProbes.class,
        ConnectionProbes.class, EpochProbes.class, FetchProbes.class, FetchSessionProbes.class, GroupProbes.class, ListOffsetsProbes.class, ListenerProbes.class,
        MetadataProbes.class, OffsetsTopicProbes.class, PartitionProbes.class, ProduceProbes.class,
        ProducerStateProbes.class, RestartProbes.class, SyncProbes.class, TopicProbes.class,
        TransactionProbes.class);

    private static final String USAGE = "usage: HOST:PORT [--only CASE,CASE…] [--self-check]";

    private Main() {
    }

    public static void main(String[] words) throws Exception {
        if (words.length == 0 || words[0].startsWith("--")) {
            throw new IllegalArgumentException(USAGE);
        }
        Set<String> only = null;
        boolean selfCheck = false;
        for (int i = 1; i < words.length; i++) {
            if (words[i].equals("--self-check")) {
                selfCheck = true;
            } else if (words[i].equals("--only") && i + 1 < words.length) {
                only = Set.of(words[++i].split(","));
            } else {
                throw new IllegalArgumentException(USAGE);
            }
        }
        Set<String> chosen = only;
        Stream<Run> all = FAMILIES.stream().flatMap(family -> Arrays.stream(family.getDeclaredMethods()))
            .filter(method -> method.isAnnotationPresent(Probe.class)).map(Run::new);
        List<Run> runs = all.filter(run -> chosen == null || chosen.contains(run.caseId()))
            .sorted(Comparator.comparing(Run::name)).toList();
        System.exit(new Session(new Outside(words[0]), selfCheck).all(runs) ? 0 : 1);
    }
}
