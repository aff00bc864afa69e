package harness;

import java.util.Map;

import kafka.utils.TestUtils$;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.loading.ClassReloadingStrategy;
import net.bytebuddy.matcher.ElementMatchers;

import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Topics that the Scala tests make through their own helper get as many replicas as there are brokers at most. */
public final class OneReplica {
    private OneReplica() { }

    static void install() {
        ByteBuddyAgent.install();
        new ByteBuddy().redefine(TestUtils$.class)
            .visit(Advice.to(Lower.class).on(ElementMatchers.named("createTopicWithAdminRaw")))
            .make().load(TestUtils$.class.getClassLoader(), ClassReloadingStrategy.fromInstalledAgent());
    }

    /** Becomes the beginning of the helper; its arguments 3 and 4 are the number of replicas and where they are. */
    public static final class Lower {
        private Lower() { }

        @Advice.OnMethodEnter
        public static void enter(@Advice.Argument(value = 3, readOnly = false) int replicas,
            @Advice.Argument(value = 4, readOnly = false) scala.collection.Map<Object, Seq<Object>> assignment) {
            replicas = Math.min(replicas, Cluster.BROKERS_MAX);
            assignment = first(assignment);
        }
    }

    /** Every partition on the broker that there is. */
    public static scala.collection.Map<Object, Seq<Object>> first(scala.collection.Map<Object, Seq<Object>> assignment) {
        Map<Object, Seq<Object>> lowered = new java.util.HashMap<>();
        CollectionConverters.asJava(assignment).keySet()
            .forEach(partition -> lowered.put(partition, CollectionConverters.asScala(java.util.List.<Object>of(0))));
        return CollectionConverters.asScala(lowered);
    }
}
