package main

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Event is something that happened to an order.
type Event struct {
	Order string `json:"order"`
	// Number counts the events of an order, from 1. A consumer knows by it what it has processed before.
	Number int `json:"number"`
}

// record returns the event as a record. Records of one key are in one partition.
func (e Event) record(topic string) (*kgo.Record, error) {
	value, err := json.Marshal(e)
	return &kgo.Record{Topic: topic, Key: []byte(e.Order), Value: value}, err
}

func parseEvent(r *kgo.Record) (e Event, err error) {
	if err = json.Unmarshal(r.Value, &e); err != nil {
		err = fmt.Errorf("%w: not an event of an order: %w", ErrPoison, err)
	}
	return e, err
}
