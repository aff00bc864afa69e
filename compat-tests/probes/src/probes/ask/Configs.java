package probes.ask;

import org.apache.kafka.common.message.AlterConfigsRequestData;
import org.apache.kafka.common.message.AlterConfigsResponseData;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData.AlterableConfig;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData.AlterConfigsResource;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData.AlterConfigsResourceResponse;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.io.IOException;
import java.util.List;

/** Configurations of topics and of the broker: read, replaced, edited. */
public final class Configs {
    public static final byte TOPIC = 2;
    public static final byte BROKER = 4;
    /** Where a value comes from. */
    public static final byte FROM_TOPIC = 1;
    public static final byte FROM_DEFAULT = 5;
    private static final byte SET = 0;

    private Configs() {
    }

    /** @param keys null and none at all both mean every key */
    public static DescribeConfigsResult describe(Wire wire, int version, byte type, String name, List<String> keys)
            throws IOException {
        var resource = new DescribeConfigsResource().setResourceType(type).setResourceName(name)
            .setConfigurationKeys(keys);
        DescribeConfigsResponseData answer = wire.call(new DescribeConfigsRequestData().setIncludeSynonyms(true)
            .setIncludeDocumentation(version >= 3).setResources(List.of(resource)), version);
        return answer.results().get(0);
    }

    public static DescribeConfigsResult describe(Wire wire, byte type, String name) throws IOException {
        return describe(wire, 4, type, name, null);
    }

    /** One key of a topic; null when it is not told. */
    public static DescribeConfigsResourceResult of(Wire wire, Topic topic, String key) throws IOException {
        return find(describe(wire, 4, TOPIC, topic.name(), List.of(key)), key);
    }

    public static DescribeConfigsResourceResult find(DescribeConfigsResult result, String key) {
        return result.configs().stream().filter(c -> c.name().equals(key)).findFirst().orElse(null);
    }

    /** A number of the broker's own. */
    public static long ofBroker(Wire wire, String key) throws IOException {
        String id = Integer.toString(Topics.brokerId(wire));
        return Long.parseLong(find(describe(wire, 4, BROKER, id, List.of(key)), key).value());
    }

    /** For an edit of one topic: key, value, key, value … are set. */
    public static AlterConfigsResource edit(Topic topic, String... config) {
        AlterConfigsResource resource = new AlterConfigsResource().setResourceType(TOPIC).setResourceName(topic.name());
        for (int i = 0; i < config.length; i += 2) {
            resource.configs().add(new AlterableConfig().setName(config[i]).setValue(config[i + 1])
                .setConfigOperation(SET));
        }
        return resource;
    }

    /** IncrementalAlterConfigs of any number of topics. */
    public static List<AlterConfigsResourceResponse> alter(Wire wire, AlterConfigsResource... edits)
            throws IOException {
        IncrementalAlterConfigsRequestData request = new IncrementalAlterConfigsRequestData();
        for (AlterConfigsResource edit : edits) {
            request.resources().add(edit);
        }
        IncrementalAlterConfigsResponseData answer = wire.call(request, 1);
        return answer.responses();
    }

    public static short alter(Wire wire, Topic topic, String... config) throws IOException {
        return alter(wire, edit(topic, config)).get(0).errorCode();
    }

    /** For AlterConfigs, after which nothing else is set: key, value, key, value … */
    public static AlterConfigsRequestData.AlterConfigsResource whole(Topic topic, String... config) {
        var resource = new AlterConfigsRequestData.AlterConfigsResource().setResourceType(TOPIC)
            .setResourceName(topic.name());
        for (int i = 0; i < config.length; i += 2) {
            resource.configs().add(new AlterConfigsRequestData.AlterableConfig().setName(config[i])
                .setValue(config[i + 1]));
        }
        return resource;
    }

    /** AlterConfigs; error codes in the order of the answer. */
    public static List<Short> replace(Wire wire, boolean validateOnly,
            AlterConfigsRequestData.AlterConfigsResource... all) throws IOException {
        AlterConfigsRequestData request = new AlterConfigsRequestData().setValidateOnly(validateOnly);
        for (var resource : all) {
            request.resources().mustAdd(resource);
        }
        AlterConfigsResponseData answer = wire.call(request, 2);
        return answer.responses().stream().map(r -> r.errorCode()).toList();
    }
}
