// Checks of franz-go against the broker at HOST:PORT; prints a line per check.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 40 * time.Second

var (
	bootstrap string
	failed    int
	number    int
)

// check runs one check under a time limit and prints its line.
func check(name string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := body(ctx); err != nil {
		failed++
		fmt.Printf("FAIL %s -- %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Printf("PASS %s\n", name)
}

func main() {
	bootstrap = os.Args[1]
	topicChecks()
	recordChecks()
	groupChecks()
	if failed > 0 {
		os.Exit(1)
	}
}

func fresh(kind string) string {
	number++
	return fmt.Sprintf("%s-%d-%d", kind, time.Now().UnixNano(), number)
}

func client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...)
}

func admin() (*kadm.Client, error) {
	c, err := client()
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(c), nil
}

func create(ctx context.Context, partitions int32) (string, error) {
	a, err := admin()
	if err != nil {
		return "", err
	}
	defer a.Close()
	name := fresh("topic")
	_, err = a.CreateTopic(ctx, partitions, 1, nil, name)
	return name, err
}

// send produces the values to partition 0, one after the other acknowledged.
func send(ctx context.Context, topic string, values []string, options ...kgo.Opt) error {
	options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	c, err := client(options...)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, value := range values {
		record := &kgo.Record{Topic: topic, Value: []byte(value)}
		if err := c.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// take polls until so many records came.
func take(ctx context.Context, c *kgo.Client, count int) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for len(records) < count {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("only %d of %d records came", len(records), count)
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return nil, errs[0].Err
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

func read(ctx context.Context, topic string, count int, at kgo.Offset) ([]*kgo.Record, error) {
	c, err := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: at}}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return take(ctx, c, count)
}

func values(records []*kgo.Record) string {
	var all []string
	for _, record := range records {
		all = append(all, string(record.Value))
	}
	return strings.Join(all, " ")
}

func equal(want, got any) error {
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Errorf("want %v, got %v", want, got)
	}
	return nil
}

// broker stops the broker with SIGTERM (term) or kill -9 (kill) and starts it again.
func broker(order string) error {
	words := append(strings.Fields(os.Getenv("BROKER_CTL")), order)
	return exec.Command(words[0], words[1:]...).Run()
}
