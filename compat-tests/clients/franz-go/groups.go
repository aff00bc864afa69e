// Classic groups: assignors, rebalances, commits, restarts of the broker.
package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func groupChecks() {
	balancers := []struct {
		name     string
		balancer kgo.GroupBalancer
	}{
		{"range", kgo.RangeBalancer()}, {"roundrobin", kgo.RoundRobinBalancer()},
		{"sticky", kgo.StickyBalancer()}, {"cooperative-sticky", kgo.CooperativeStickyBalancer()},
	}
	for _, b := range balancers {
		check("group-"+b.name, func(ctx context.Context) error { return rebalances(ctx, b.balancer) })
	}
	check("groups-administered", groupsAdministered)
	for _, how := range []string{"term", "kill"} {
		check("resume-after-"+how, func(ctx context.Context) error { return resume(ctx, how) })
	}
}

// member counts the partitions that it holds.
type member struct {
	client *kgo.Client
	cancel context.CancelFunc
	lock   sync.Mutex
	holds  map[int32]bool
}

func join(topic, group string, balancer kgo.GroupBalancer) (*member, error) {
	m := &member{holds: map[int32]bool{}}
	change := func(to bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			m.lock.Lock()
			defer m.lock.Unlock()
			for _, p := range partitions[topic] {
				if to {
					m.holds[p] = true
				} else {
					delete(m.holds, p)
				}
			}
		}
	}
	var err error
	m.client, err = client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancer),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.SessionTimeout(10*time.Second),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		for ctx.Err() == nil {
			m.client.PollFetches(ctx)
		}
	}()
	return m, nil
}

func (m *member) leave() {
	m.cancel()
	m.client.Close()
}

// settle waits until the members share six partitions equally.
func settle(ctx context.Context, members []*member) error {
	for ctx.Err() == nil {
		var all []int
		even := true
		for _, m := range members {
			m.lock.Lock()
			for p := range m.holds {
				all = append(all, int(p))
			}
			even = even && len(m.holds) == 6/len(members)
			m.lock.Unlock()
		}
		sort.Ints(all)
		if even && fmt.Sprint(all) == "[0 1 2 3 4 5]" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%d members found no balance", len(members))
}

func rebalances(ctx context.Context, balancer kgo.GroupBalancer) error {
	topic, err := create(ctx, 6)
	if err != nil {
		return err
	}
	group := fresh("group")
	var members []*member
	defer func() {
		for _, m := range members {
			m.leave()
		}
	}()
	for range 3 {
		m, err := join(topic, group, balancer)
		if err != nil {
			return err
		}
		members = append(members, m)
		if err := settle(ctx, members); err != nil {
			return err
		}
	}
	members[2].leave()
	members = members[:2]
	return settle(ctx, members)
}

func groupsAdministered(ctx context.Context) error {
	a, err := admin()
	if err != nil {
		return err
	}
	defer a.Close()
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	group := fresh("group")
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, 7, -1)
	if err := a.CommitAllOffsets(ctx, group, offsets); err != nil {
		return err
	}
	fetched, err := a.FetchOffsets(ctx, group)
	if err != nil {
		return err
	}
	at, _ := fetched.Lookup(topic, 0)
	if err := equal(7, at.At); err != nil {
		return err
	}
	described, err := a.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	if err := equal("Empty", described[group].State); err != nil {
		return err
	}
	_, err = a.DeleteGroup(ctx, group)
	return err
}

func resume(ctx context.Context, how string) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	if err := send(ctx, topic, []string{"a", "b", "c"}); err != nil {
		return err
	}
	group := fresh("group")
	options := []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(10 * time.Second)}
	c, err := client(options...)
	if err != nil {
		return err
	}
	got, err := take(ctx, c, 3)
	if err == nil {
		err = c.CommitRecords(ctx, got[:2]...)
	}
	c.Close()
	if err != nil {
		return err
	}
	if err := broker(how); err != nil {
		return err
	}
	c, err = client(options...)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err = take(ctx, c, 1)
	if err != nil {
		return err
	}
	return equal("c", values(got))
}
