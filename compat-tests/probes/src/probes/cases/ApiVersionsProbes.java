package probes.cases;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.AddPartitionsToTxnRequestData;
import org.apache.kafka.common.message.AddPartitionsToTxnRequestData.AddPartitionsToTxnTransaction;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersionCollection;
import org.apache.kafka.common.message.DescribeAclsRequestData;
import org.apache.kafka.common.message.GetTelemetrySubscriptionsRequestData;
import org.apache.kafka.common.message.GetTelemetrySubscriptionsResponseData;
import org.apache.kafka.common.message.PushTelemetryRequestData;
import org.apache.kafka.common.message.PushTelemetryResponseData;
import org.apache.kafka.common.message.UpdateFeaturesRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Wrong;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.io.IOException;
import java.util.Random;
import java.util.Set;

import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_SUBSCRIPTION_ID;
import static org.apache.kafka.common.protocol.Errors.UNSUPPORTED_VERSION;

/** What the broker says that it serves, and whether it does. */
public final class ApiVersionsProbes {
    private static final short API_VERSIONS = 18;
    private static final short TELEMETRY = 71;
    /** May not be asked on any cluster: SASL beside authentication, brokers and voters that leave or join. */
    private static final Set<Short> NOT_ASKED = Set.of((short) 36, (short) 64, (short) 80, (short) 81, (short) 82);

    private ApiVersionsProbes() {
    }

    private static ApiVersionsRequestData hello() {
        return new ApiVersionsRequestData().setClientSoftwareName("probe").setClientSoftwareVersion("1");
    }

    static ApiVersionCollection served(Wire wire) throws IOException {
        ApiVersionsResponseData answer = wire.call(hello(), 4);
        return answer.apiKeys();
    }

    @Probe("C032 ApiVersions of a version to come is refused in version 0, and the connection goes on")
    static void versionToCome(Check check) throws Exception {
        Random random = new Random(5);
        int[] versions = {6, 99, Short.MAX_VALUE};
        for (int i = 0; i < 20; i++) {
            Wire wire = check.another();
            byte[] body = new byte[random.nextInt(40)];
            random.nextBytes(body);
            int version = versions[i % versions.length];
            int correlation = 100 + i;
            wire.raw(Wire.sized(Wire.concat(Wire.header(API_VERSIONS, version, correlation, 2), body)));
            var answer = (ApiVersionsResponseData) Wire.decode(wire.frame(), API_VERSIONS, (short) 0, correlation);
            check.code("v" + version, answer.errorCode(), UNSUPPORTED_VERSION);
            ApiVersion own = answer.apiKeys().find(API_VERSIONS);
            if (own == null) {
                throw new Wrong("v" + version + ": ApiVersions itself is not listed");
            }
            check.that("its newest version", own.maxVersion() >= 3, own.maxVersion());
            ApiVersionsResponseData again = wire.call(hello(), own.maxVersion());
            check.code("the newest version on the same connection", again.errorCode(), NONE);
        }
    }

    @Probe(value = "C035 every advertised version is answered, and the one after it closes", seconds = 60,
        spoil = Spoil.CLOSING)
    static void honest(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        ApiVersionCollection served = served(check.wire());
        int answered = 0;
        for (ApiVersion api : served) {
            ApiMessageType type = ApiMessageType.fromApiKey(api.apiKey());
            int first = Math.max(api.minVersion(), type.lowestSupportedVersion());
            for (int version = first; version <= api.maxVersion() && !NOT_ASKED.contains(api.apiKey()); version++) {
                answered += isAnswered(check, type, version, topic) ? 1 : 0;
            }
            if (api.apiKey() != API_VERSIONS) {
                nextVersionCloses(check, type, api.maxVersion() + 1);
            }
        }
        check.note(served.size() + " keys, " + answered + " versions answered");
        boolean topicIds = served.find((short) 0).maxVersion() >= 13 || served.find((short) 1).maxVersion() >= 13;
        check.that("topic ids only with Metadata v10", !topicIds || served.find((short) 3).maxVersion() >= 10, served);
    }

    /** False when no request in that version can be made. */
    private static boolean isAnswered(Check check, ApiMessageType type, int version, Topic topic) throws Exception {
        try (Wire wire = check.another().patience(10_000)) {
            wire.call(request(type, version, topic), version);
            return true;
        } catch (UnsupportedVersionException e) {
            return false;
        } catch (IOException | RuntimeException e) {
            check.fail(type + " v" + version + ": " + e.getMessage());
            return false;
        }
    }

    /** The smallest request of an API that is valid. */
    private static ApiMessage request(ApiMessageType type, int version, Topic topic) {
        ApiMessage request = type.newRequest();
        return switch (type) {
            case API_VERSIONS -> version >= 3 ? hello() : request;
            case PRODUCE -> Produce.request(topic, Batch.of("v"));
            case UPDATE_FEATURES -> ((UpdateFeaturesRequestData) request).setValidateOnly(version >= 1);
            case DESCRIBE_ACLS -> {
                byte any = 1;
                yield ((DescribeAclsRequestData) request).setResourceTypeFilter(any).setPatternTypeFilter(any)
                    .setOperation(any).setPermissionType(any);
            }
            case ADD_PARTITIONS_TO_TXN -> {
                if (version >= 4) {
                    ((AddPartitionsToTxnRequestData) request).transactions()
                        .add(new AddPartitionsToTxnTransaction().setTransactionalId("none"));
                }
                yield request;
            }
            default -> request;
        };
    }

    private static void nextVersionCloses(Check check, ApiMessageType type, int version) throws Exception {
        try (Wire wire = check.another()) {
            short header = type.requestHeaderVersion((short) (version - 1));
            wire.raw(Wire.sized(Wire.concat(Wire.header(type.apiKey(), version, 1, header), new byte[50])));
            check.that(type + " v" + version + " closes", wire.closes(10_000), "open");
        }
    }

    @Probe(value = "C036 client telemetry is served whole or not advertised at all",
        spoil = {Spoil.REFUSALS, Spoil.CLOSING})
    static void telemetry(Check check) throws Exception {
        ApiVersionCollection served = served(check.wire());
        boolean advertised = served.find(TELEMETRY) != null;
        check.equal("PushTelemetry beside GetTelemetrySubscriptions", advertised,
            served.find((short) (TELEMETRY + 1)) != null);
        check.note(advertised ? "advertised" : "not advertised");
        Wire wire = check.another();
        wire.send(new GetTelemetrySubscriptionsRequestData().setClientInstanceId(Uuid.ZERO_UUID), 0);
        Wire.End end = wire.end(10_000);
        if (!advertised && end != Wire.End.DATA) {
            check.that("asked all the same, it closes", end != Wire.End.OPEN, end);
            return;
        }
        GetTelemetrySubscriptionsResponseData first = wire.receive();
        Uuid id = first.clientInstanceId();
        check.that("a fresh id", !id.equals(Uuid.ZERO_UUID), id);
        check.that("an interval", first.pushIntervalMs() > 0, first.pushIntervalMs());
        GetTelemetrySubscriptionsResponseData again = wire.call(
            new GetTelemetrySubscriptionsRequestData().setClientInstanceId(id), 0);
        check.equal("the id for one who has one", Uuid.ZERO_UUID, again.clientInstanceId());
        PushTelemetryResponseData pushed = wire.call(new PushTelemetryRequestData().setClientInstanceId(id)
            .setSubscriptionId(first.subscriptionId() + 1), 0);
        check.code("a push under another subscription", pushed.errorCode(), UNKNOWN_SUBSCRIPTION_ID);
    }
}
