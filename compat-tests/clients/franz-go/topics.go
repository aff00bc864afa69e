// Topics and configs by the admin client.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func topicChecks() {
	check("topic-life", topicLife)
	check("topic-errors", topicErrors)
	check("topic-by-producing", topicByProducing)
	check("topic-configs", topicConfigs)
	check("offsets-and-deleted-records", offsetsAndDeletedRecords)
}

func topicLife(ctx context.Context) error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	topic, err := create(ctx, 3)
	if err != nil {
		return err
	}
	details, err := a.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	if err := equal(3, len(details[topic].Partitions)); err != nil {
		return err
	}
	if _, err := a.UpdatePartitions(ctx, 5, topic); err != nil {
		return err
	}
	for {
		details, err = a.ListTopics(ctx, topic)
		if err != nil || len(details[topic].Partitions) == 5 {
			break
		}
	}
	if err != nil {
		return err
	}
	_, err = a.DeleteTopic(ctx, topic)
	return err
}

func topicErrors(ctx context.Context) error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	if _, err := a.CreateTopic(ctx, 1, 1, nil, topic); !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("created twice: %v", err)
	}
	if _, err := a.CreateTopic(ctx, 1, 7, nil, fresh("topic")); !errors.Is(err, kerr.InvalidReplicationFactor) {
		return fmt.Errorf("seven replicas: %v", err)
	}
	if _, err := a.DeleteTopic(ctx, fresh("topic")); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("an unknown topic deleted: %v", err)
	}
	return nil
}

func topicByProducing(ctx context.Context) error {
	c, err := client(kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer c.Close()
	topic := fresh("auto")
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("a")}).FirstErr(); err != nil {
		return err
	}
	details, err := kadm.NewClient(c).ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	return equal(4, len(details[topic].Partitions))
}

func topicConfigs(ctx context.Context) error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	value := "123456"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	if _, err := a.AlterTopicConfigs(ctx, change, topic); err != nil {
		return err
	}
	for {
		described, err := a.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		for _, config := range described[0].Configs {
			if config.Key == "retention.ms" && config.Value != nil && *config.Value == value {
				return nil
			}
		}
	}
}

func offsetsAndDeletedRecords(ctx context.Context) error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	if err := send(ctx, topic, []string{"a", "b", "c"}); err != nil {
		return err
	}
	ends, err := a.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(topic, 0)
	if err := equal(3, end.Offset); err != nil {
		return err
	}
	var upTo kadm.Offsets
	upTo.AddOffset(topic, 0, 2, -1)
	if _, err := a.DeleteRecords(ctx, upTo); err != nil {
		return err
	}
	starts, err := a.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	start, _ := starts.Lookup(topic, 0)
	return equal(2, start.Offset)
}
