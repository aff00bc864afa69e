// Producing and reading.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func recordChecks() {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		check("codec-"+name, func(ctx context.Context) error { return codec(ctx, codecs[name]) })
	}
	check("nulls-headers-times", nullsHeadersTimes)
	check("from-an-offset-and-a-time", fromOffsetAndTime)
	check("without-idempotence", withoutIdempotence)
	check("a-waiting-reader-wakes", waitingReaderWakes)
}

func codec(ctx context.Context, codec kgo.CompressionCodec) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	c, err := client(kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer c.Close()
	var records []*kgo.Record
	var want []string
	for i := range 300 {
		value := strings.Repeat(fmt.Sprint("value", i), 10)
		want = append(want, value)
		records = append(records, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(value)})
	}
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	got, err := read(ctx, topic, 300, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	return equal(strings.Join(want, " "), values(got))
}

func nullsHeadersTimes(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	c, err := client()
	if err != nil {
		return err
	}
	defer c.Close()
	at := time.UnixMilli(1_600_000_000_123)
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "null", Value: nil}}
	for _, pair := range [][2][]byte{{nil, []byte("v")}, {[]byte("k"), nil}, {{}, {}}} {
		record := &kgo.Record{Topic: topic, Key: pair[0], Value: pair[1], Headers: headers, Timestamp: at}
		if err := c.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	got, err := read(ctx, topic, 3, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	shape := func(r *kgo.Record) string {
		return fmt.Sprint(r.Key == nil, r.Value == nil, len(r.Headers), r.Headers[1].Value == nil, r.Timestamp.UnixMilli())
	}
	want := "true false 2 true 1600000000123|false true 2 true 1600000000123|false false 2 true 1600000000123"
	return equal(want, strings.Join([]string{shape(got[0]), shape(got[1]), shape(got[2])}, "|"))
}

func fromOffsetAndTime(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	c, err := client()
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range 5 {
		at := time.UnixMilli(1_600_000_000_000 + int64(i)*1000)
		record := &kgo.Record{Topic: topic, Value: fmt.Append(nil, i), Timestamp: at}
		if err := c.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	for _, at := range []kgo.Offset{kgo.NewOffset().At(3), kgo.NewOffset().AfterMilli(1_600_000_002_500), kgo.NewOffset().AtEnd().Relative(-2)} {
		got, err := read(ctx, topic, 2, at)
		if err != nil {
			return err
		}
		if err := equal("3 4", values(got)); err != nil {
			return err
		}
	}
	return nil
}

func withoutIdempotence(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	options := []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}
	if err := send(ctx, topic, []string{"a", "b"}, options...); err != nil {
		return err
	}
	got, err := read(ctx, topic, 2, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	return equal("a b", values(got))
}

func waitingReaderWakes(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	at := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	c, err := client(kgo.ConsumePartitions(at), kgo.FetchMaxWait(20*time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range 4 {
		started := time.Now()
		if err := send(ctx, topic, []string{fmt.Sprint(i)}); err != nil {
			return err
		}
		if _, err := take(ctx, c, 1); err != nil {
			return err
		}
		if time.Since(started) > 10*time.Second {
			return fmt.Errorf("the fetch slept on")
		}
	}
	return nil
}
