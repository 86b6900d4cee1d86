package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var errCut = errors.New("the connections of this member are cut")

// member is one that works on partitions.
type member struct {
	name string
	book *book
	// over says that it works no more.
	over atomic.Bool
	// end ends it in order, as far as its connections allow that.
	end func()

	mu    sync.Mutex
	wires []net.Conn
	cut   bool
}

func (m *member) worked(partition int) {
	if !m.over.Load() {
		m.book.worked(partition, m.name, time.Now())
	}
}

// dial connects the member to something.
func (m *member) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		return nil, errors.Join(errCut, conn.Close())
	}
	m.wires = append(m.wires, conn)
	return conn, nil
}

// crash has the member do nothing any more, and closes its connections without a word, as the kernel does for a process that was killed.
func (m *member) crash() {
	m.over.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = true
	for _, conn := range m.wires {
		_ = conn.Close() // it may be closed
	}
}

// crew are members of a contender in which each starts and ends by itself.
type crew struct {
	options
	book *book
	// enter connects a member and has it work.
	enter func(ctx context.Context, m *member) error
	// leaving ends what the members share, after them.
	leaving []func() error

	n       int
	crew    []*member
	running sync.WaitGroup
}

func (c *crew) join(ctx context.Context) error {
	if err := pause(ctx, c.start); err != nil {
		return err
	}
	m := &member{name: fmt.Sprintf("member-%d", c.n), book: c.book}
	if err := c.enter(ctx, m); err != nil {
		return err
	}
	c.n++
	c.crew = append(c.crew, m)
	return nil
}

func (c *crew) leave(_ context.Context, name string) error {
	c.take(name).end()
	return nil
}

func (c *crew) replace(ctx context.Context, name string, crash bool) error {
	m := c.take(name)
	if crash {
		m.crash()
	}
	c.running.Go(m.end)
	return c.join(ctx)
}

func (c *crew) roll(ctx context.Context, settle func() error) error {
	for _, old := range c.members() {
		if err := c.join(ctx); err != nil {
			return err
		}
		c.take(old).end()
		if err := settle(); err != nil {
			return err
		}
	}
	return nil
}

// take has a member not be one any more.
func (c *crew) take(name string) *member {
	i := slices.IndexFunc(c.crew, func(m *member) bool { return m.name == name })
	m := c.crew[i]
	c.crew = slices.Delete(c.crew, i, i+1)
	return m
}

func (c *crew) members() []string { return namesOf(c.crew) }

func namesOf(all []*member) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.name
	}
	return names
}

func (c *crew) close() (err error) {
	for _, m := range c.crew {
		c.running.Go(m.end)
	}
	c.running.Wait()
	for _, leave := range slices.Backward(c.leaving) {
		err = errors.Join(err, leave())
	}
	return err
}

// pause returns after d.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// feed has something to do for each partition at each tick, until stop is called.
func feed(ctx context.Context, o options, send func(context.Context, int) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(o.pace)
		defer tick.Stop()
		for {
			for p := range o.partitions {
				if err := send(ctx, p); err != nil && ctx.Err() == nil {
					done <- fmt.Errorf("send to partition %d: %w", p, err)
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				done <- nil
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-done
	}
}
