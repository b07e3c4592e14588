// Real work with franz-go: produce keyed records idempotently, read them by a group of two, commit,
// and read again with the same group. Prints one JSON object; exits with 1 when anything fails.
//
// With `pattern` the group subscribes to a regular expression that only the topic matches; with
// `new-` its members speak the new group protocol (KIP-848). With `transactions` the records are
// committed in transactions, before each of which one is aborted.
//
// With `rights` it is refused, gives itself the right to write, and takes it away again. With
// `quota` it writes records of 10 kB one by one, and tells for how long it was told to rest.
// SASL_USER and SASL_PASSWORD of the environment are who it is.
//
//	interop BOOTSTRAP TOPIC RECORDS name|pattern|new-name|new-pattern|transactions|rights|quota
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const keys = 100

type report struct {
	Produced   int `json:"produced"`
	Consumed   int `json:"consumed"`
	Duplicated int `json:"duplicated"`
	OutOfOrder int `json:"out_of_order"`
	Reread     int `json:"reread"`
}

func main() {
	seeds := strings.Split(os.Args[1], ",")
	topic := os.Args[2]
	switch os.Args[4] {
	case "write", "named-write":
		write(seeds, topic)
		return
	case "read", "named-read":
		read(seeds, topic)
		return
	case "sarama-write":
		saramaWrite(seeds, topic)
		return
	case "sarama-read":
		saramaRead(seeds, topic)
		return
	}
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()

	switch os.Args[4] {
	case "rights":
		check(json.NewEncoder(os.Stdout).Encode(rights(ctx, seeds, topic)))
		return
	case "quota":
		check(json.NewEncoder(os.Stdout).Encode(limited(ctx, seeds, topic, count)))
		return
	}
	found := report{}
	if os.Args[4] == "transactions" {
		found.Produced = transact(ctx, seeds, topic, count)
	} else {
		found.Produced = produce(ctx, seeds, topic, count)
	}
	found.consume(ctx, seeds, topic, count)
	found.Reread = again(seeds, topic)
	check(json.NewEncoder(os.Stdout).Encode(found))
}

// rights writes without the right, with it, and without it again.
func rights(ctx context.Context, seeds []string, topic string) map[string]int {
	who := plain.Auth{User: os.Getenv("SASL_USER"), Pass: os.Getenv("SASL_PASSWORD")}
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.SASL(who.AsMechanism()))
	check(err)
	defer client.Close()
	found := map[string]int{"refused": 0, "written": 0}
	write := func(isWanted func(error) bool, as string) {
		for ctx.Err() == nil {
			if isWanted(client.ProduceSync(ctx, record(topic, 0)).FirstErr()) {
				found[as]++
				return
			}
			time.Sleep(50 * time.Millisecond) // brokers hear of rights one after the other
		}
	}
	refused := func(err error) bool { return errors.Is(err, kerr.TopicAuthorizationFailed) }
	written := func(err error) bool { return err == nil }
	write(refused, "refused")
	given := kmsg.NewCreateACLsRequestCreation()
	given.ResourceType, given.ResourceName = kmsg.ACLResourceTypeTopic, topic
	given.ResourcePatternType, given.PermissionType = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLPermissionTypeAllow
	given.Principal, given.Host, given.Operation = "User:"+who.User, "*", kmsg.ACLOperationWrite
	create := kmsg.NewCreateACLsRequest()
	create.Creations = append(create.Creations, given)
	created, err := create.RequestWith(ctx, client)
	check(err)
	check(kerr.ErrorForCode(created.Results[0].ErrorCode))
	write(written, "written")
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName = given.ResourceType, &topic
	filter.ResourcePatternType, filter.PermissionType = given.ResourcePatternType, given.PermissionType
	filter.Principal, filter.Operation = &given.Principal, given.Operation
	remove := kmsg.NewDeleteACLsRequest()
	remove.Filters = append(remove.Filters, filter)
	removed, err := remove.RequestWith(ctx, client)
	check(err)
	check(kerr.ErrorForCode(removed.Results[0].ErrorCode))
	write(refused, "refused")
	return found
}

// throttled adds up for how long brokers told the client to rest.
type throttled struct{ rest time.Duration }

func (t *throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.rest += interval
}

// limited writes so many records of 10 kB, and tells how long that took.
func limited(ctx context.Context, seeds []string, topic string, count int) map[string]int {
	told := &throttled{}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.ClientID(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.WithHooks(told),
	)
	check(err)
	defer client.Close()
	began := time.Now()
	for range count {
		large := &kgo.Record{Topic: topic, Value: make([]byte, 10_000)}
		check(client.ProduceSync(ctx, large).FirstErr())
	}
	took := int(time.Since(began).Milliseconds())
	return map[string]int{"took_ms": took, "told_ms": int(told.rest.Milliseconds())}
}

// produce returns how many records were acknowledged.
func produce(ctx context.Context, seeds []string, topic string, count int) int {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		kgo.ProducerLinger(5*time.Millisecond),
	)
	check(err)
	defer client.Close()
	var lock sync.Mutex
	acknowledged := 0
	for number := range count {
		record := &kgo.Record{
			Topic:   topic,
			Key:     []byte(fmt.Sprintf("key-%d", number%keys)),
			Value:   []byte(strconv.Itoa(number)),
			Headers: []kgo.RecordHeader{{Key: "from", Value: []byte("franz-go")}},
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			check(err)
			lock.Lock()
			acknowledged++
			lock.Unlock()
		})
	}
	check(client.Flush(ctx))
	return acknowledged
}

// transact returns how many records were committed.
func transact(ctx context.Context, seeds []string, topic string, count int) int {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.TransactionalID(topic+"-go"))
	check(err)
	defer client.Close()
	committed := 0
	for committed < count {
		within(ctx, client, kgo.TryAbort, record(topic, -1))
		records := []*kgo.Record{}
		for number := committed; number < min(committed+500, count); number++ {
			records = append(records, record(topic, number))
		}
		within(ctx, client, kgo.TryCommit, records...)
		committed += len(records)
	}
	return committed
}

// within writes records in a transaction and ends it.
func within(ctx context.Context, client *kgo.Client, how kgo.TransactionEndTry, records ...*kgo.Record) {
	check(client.BeginTransaction())
	check(client.ProduceSync(ctx, records...).FirstErr())
	check(client.EndTransaction(ctx, how))
}

func record(topic string, number int) *kgo.Record {
	key := fmt.Sprintf("key-%d", max(number, 0)%keys)
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(strconv.Itoa(number))}
}

// consume reads with two members until every record was seen once, and commits.
func (found *report) consume(ctx context.Context, seeds []string, topic string, count int) {
	reading, done := context.WithCancel(ctx)
	var lock sync.Mutex
	seen := map[int]bool{}
	last := map[string]int{}
	var members sync.WaitGroup
	for range 2 {
		members.Add(1)
		go func() {
			defer members.Done()
			client := member(seeds, topic)
			defer client.CloseAllowingRebalance()
			for reading.Err() == nil {
				fetches := client.PollFetches(reading)
				lock.Lock()
				fetches.EachRecord(func(record *kgo.Record) {
					number, err := strconv.Atoi(string(record.Value))
					check(err)
					if seen[number] {
						found.Duplicated++
					}
					seen[number] = true
					if before, known := last[string(record.Key)]; known && number < before {
						found.OutOfOrder++
					}
					last[string(record.Key)] = number
				})
				found.Consumed = len(seen)
				lock.Unlock()
				check(client.CommitUncommittedOffsets(ctx))
				client.AllowRebalance()
				if found.Consumed >= count {
					done()
				}
			}
		}()
	}
	members.Wait()
	check(ctx.Err())
	done()
}

// again joins the same group once more and returns how many records it is given.
func again(seeds []string, topic string) int {
	client := member(seeds, topic)
	defer client.CloseAllowingRebalance()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	return client.PollFetches(ctx).NumRecords()
}

func member(seeds []string, topic string) *kgo.Client {
	options := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ConsumerGroup(topic + "-go"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	if strings.HasPrefix(os.Args[4], "new") {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	if strings.HasSuffix(os.Args[4], "pattern") {
		expression := "^" + regexp.QuoteMeta(topic) + "$"
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(expression))
	} else {
		options = append(options, kgo.ConsumeTopics(topic))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
