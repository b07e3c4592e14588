// The same with Sarama, the other client of Go: `sarama-write` and `sarama-read`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

const patience = 1000 // tries, a tenth of a second apart; Sarama's own three give up too soon

// ofSarama is what a careful application sets: idempotent, and patient while a site moves.
func ofSarama() *sarama.Config {
	config := sarama.NewConfig()
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = patience
	config.Metadata.Retry.Max = patience
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.RefreshFrequency = time.Second
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = time.Second
	config.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	if user := os.Getenv("SASL_USER"); user != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.User = user
		config.Net.SASL.Password = os.Getenv("SASL_PASSWORD")
	}
	return config
}

func saramaWrite(seeds []string, topic string) {
	going, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	producer, err := sarama.NewAsyncProducer(seeds, ofSarama())
	check(err)
	var told sync.WaitGroup
	told.Go(func() {
		for sent := range producer.Successes() {
			tell("producer_send_success", strconv.Itoa(sent.Metadata.(int)))
		}
	})
	told.Go(func() {
		for failed := range producer.Errors() {
			fmt.Fprintln(os.Stderr, failed.Err)
			tell("producer_send_error", strconv.Itoa(failed.Msg.Metadata.(int)))
		}
	})
	for number := 0; going.Err() == nil; number++ {
		producer.Input() <- &sarama.ProducerMessage{
			Topic: topic, Value: sarama.StringEncoder(strconv.Itoa(number)), Metadata: number,
		}
		time.Sleep(pause)
	}
	producer.AsyncClose()
	told.Wait()
}

// saramaRead is one member of a group, which commits by itself.
func saramaRead(seeds []string, topic string) {
	going, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	group, err := sarama.NewConsumerGroup(seeds, groupOf(topic), ofSarama())
	check(err)
	for going.Err() == nil {
		if err := group.Consume(going, []string{topic}, teller{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(pause)
		}
	}
	check(group.Close())
}

type teller struct{}

func (teller) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (teller) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (teller) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			tell("record_data", string(message.Value))
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
