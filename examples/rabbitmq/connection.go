package main

import (
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// heartbeat is how often both sides show that they live. Two that are missing end the connection. The broker then gives what was
// not acknowledged to the next consumer, so this must be well before idalloc gives the queue to another pod.
const heartbeat = 5 * time.Second

// connection is a connection to the broker. It is made again after a loss. All queues of a pod share it.
type connection struct {
	url string

	mu   sync.Mutex
	conn *amqp.Connection
}

// channel opens a channel, and before that a connection where there is none.
func (c *connection) channel() (*amqp.Channel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.conn.IsClosed() {
		conn, err := amqp.DialConfig(c.url, amqp.Config{Heartbeat: heartbeat})
		if err != nil {
			return nil, fmt.Errorf("connect to the broker: %w", err)
		}
		c.conn = conn
	}
	return c.conn.Channel()
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // it may be lost, and that is as good
	}
}
