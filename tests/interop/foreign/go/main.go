// Real work with franz-go: produce keyed records idempotently, read them by a group of two, commit,
// and read again with the same group. Prints one JSON object; exits with 1 when anything fails.
//
// With `pattern` the group subscribes to a regular expression that only the topic matches; with
// `new-` its members speak the new group protocol (KIP-848). With `transactions` the records are
// committed in transactions, before each of which one is aborted.
//
//	interop BOOTSTRAP TOPIC RECORDS name|pattern|new-name|new-pattern|transactions
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()

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
