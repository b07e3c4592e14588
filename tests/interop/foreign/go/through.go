// Writing and reading until SIGTERM, with a line for each record as Kafka's verifiable tools print
// it: what goes on around the clients, a promotion for instance, is somebody else's work.
//
// SASL_USER and SASL_PASSWORD of the environment are who it is; the group is called like the topic.
//
//	interop BOOTSTRAP TOPIC 0 write|read|named-write|named-read|sarama-write|sarama-read
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const pause = 10 * time.Millisecond

// groupOf is the group that reads a topic.
func groupOf(topic string) string { return topic + "-readers" }

// whoever is in the environment, and where the brokers are.
func whoever(seeds []string) []kgo.Opt {
	found := []kgo.Opt{kgo.SeedBrokers(seeds...)}
	if user := os.Getenv("SASL_USER"); user != "" {
		who := plain.Auth{User: user, Pass: os.Getenv("SASL_PASSWORD")}
		found = append(found, kgo.SASL(who.AsMechanism()))
	}
	if strings.HasPrefix(os.Args[4], "named-") {
		// Of 2.0's requests none has ids of topics or leader epochs, which are others at another site.
		found = append(found, kgo.MaxVersions(kversion.V2_0_0()))
	}
	return found
}

// write sends one number after the other, and tells what became of each.
func write(seeds []string, topic string) {
	going, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(whoever(seeds)...)
	check(err)
	defer client.Close()
	for number := 0; going.Err() == nil; number++ {
		client.Produce(context.Background(), record(topic, number), func(_ *kgo.Record, err error) {
			if err == nil {
				tell("producer_send_success", strconv.Itoa(number))
			} else {
				fmt.Fprintln(os.Stderr, err)
				tell("producer_send_error", strconv.Itoa(number))
			}
		})
		time.Sleep(pause)
	}
	check(client.Flush(context.Background()))
}

// read is one member of a group, which commits by itself.
func read(seeds []string, topic string) {
	going, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(append(
		whoever(seeds),
		kgo.ConsumerGroup(groupOf(topic)),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.HeartbeatInterval(time.Second),
	)...)
	check(err)
	defer client.Close()
	for going.Err() == nil {
		client.PollFetches(going).EachRecord(func(record *kgo.Record) {
			tell("record_data", string(record.Value))
		})
	}
}

func tell(name string, number string) {
	fmt.Printf("{\"name\":%q,\"value\":%s,\"timestamp\":%d}\n", name, number, time.Now().UnixMilli())
}
