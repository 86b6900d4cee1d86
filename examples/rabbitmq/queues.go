package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/dgryski/go-jump"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Event is something that happened to an order.
type Event struct {
	Order string `json:"order"`
	// Number counts the events of an order, from 1. A consumer knows by it what it has processed before.
	Number int `json:"number"`
}

func (e Event) body() ([]byte, error) { return json.Marshal(e) }

func parseEvent(body []byte) (e Event, err error) {
	if err = json.Unmarshal(body, &e); err != nil {
		err = fmt.Errorf("%w: not an event of an order: %w", ErrPoison, err)
	}
	return e, err
}

// Queues are the queues of a workload.
type Queues struct {
	// Name is what the names of the queues begin with.
	Name string
	// SingleActive has the broker deliver to one consumer of a queue at a time, whatever idalloc says.
	SingleActive bool
}

// Queue returns the name of the queue of a partition.
func (q Queues) Queue(partition int) string { return fmt.Sprintf("%s-P%d", q.Name, partition) }

// Dead returns the name of the queue of the events that can never be processed. No pod consumes it: look into it.
func (q Queues) Dead() string { return q.Name + "-dead" }

// Partition returns the partition of an order, by a consistent hash: with one queue more, only the orders that move to it have another one
// than before. What is in their old queues must be processed before the producer uses the new number.
func Partition(order string, count int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(order)) // a hash returns no error
	return int(jump.Hash(h.Sum64(), count))
}

// declare makes the queue of a partition, and Dead, if they are not there. Queues and messages outlive the broker.
func (q Queues) declare(ch *amqp.Channel, partition int) error {
	args := amqp.Table{}
	if q.SingleActive {
		args[amqp.SingleActiveConsumerArg] = true
	}
	for queue, args := range map[string]amqp.Table{q.Queue(partition): args, q.Dead(): nil} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
			return fmt.Errorf("declare %s: %w", queue, err)
		}
	}
	return nil
}
