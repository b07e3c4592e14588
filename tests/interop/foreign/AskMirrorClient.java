import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks MirrorMaker 2's own client about a cluster, one line an answer:
 * BOOTSTRAP POLICY SOURCE GROUP, then KIND=TOPIC for each topic whose last record, of syncs all, it
 * is to decode.
 */
public class AskMirrorClient {
    public static void main(String[] words) throws Exception {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", words[0]);
        properties.put("replication.policy.class", "org.apache.kafka.connect.mirror." + words[1]);
        properties.put("source.cluster.alias", words[2]);
        tell("hops", RemoteClusterUtils.replicationHops(properties, words[2]));
        tell("hops of nobody", RemoteClusterUtils.replicationHops(properties, "nobody"));
        tell("upstream", new TreeSet<>(RemoteClusterUtils.upstreamClusters(properties)));
        tell("heartbeats", new TreeSet<>(RemoteClusterUtils.heartbeatTopics(properties)));
        tell("checkpoints", new TreeSet<>(RemoteClusterUtils.checkpointTopics(properties)));
        Map<String, Long> offsets = new TreeMap<>();
        RemoteClusterUtils.translateOffsets(properties, words[2], words[3], Duration.ofSeconds(20))
            .forEach((place, offset) -> offsets.put(place.toString(), offset.offset()));
        tell("offsets", offsets);
        for (int place = 4; place < words.length; place++) {
            String[] asked = words[place].split("=");
            tell(asked[0], lastOf(words[0], asked[0], asked[1]));
        }
    }

    private static void tell(String question, Object answer) {
        System.out.println(question + ": " + answer);
    }

    private static String lastOf(String bootstrap, String kind, String topic) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
        TopicPartition place = new TopicPartition(topic, 0);
        String last = "nothing";
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    boolean isFirst = last.equals("nothing") || !kind.equals("sync");
                    last = (isFirst ? "" : last + "|") + decoded(kind, record);
                }
            }
        }
        return last;
    }

    private static String decoded(String kind, ConsumerRecord<byte[], byte[]> record) {
        switch (kind) {
            case "heartbeat":
                Heartbeat beat = Heartbeat.deserializeRecord(record);
                return beat.sourceClusterAlias() + " " + beat.targetClusterAlias() + " "
                    + (beat.timestamp() <= record.timestamp());
            case "checkpoint":
                return Checkpoint.deserializeRecord(record).toString();
            default:
                return OffsetSync.deserializeRecord(record).toString();
        }
    }
}
