package main

import (
	"fmt"
	"testing"
)

func TestAnotherNumberOfQueuesMovesAsFewOrdersAsItCan(t *testing.T) {
	const orders = 100_000
	for _, c := range []struct{ from, to int }{{8, 9}, {8, 16}, {9, 8}, {64, 65}} {
		moved, counts := 0, make([]int, c.to)
		for i := range orders {
			order := fmt.Sprintf("order-%d", i)
			before, after := Partition(order, c.from), Partition(order, c.to)
			counts[after]++
			if before == after {
				continue
			}
			moved++
			if after < c.from && before < c.to {
				t.Fatalf("%s moved from %d to %d, which both stay", order, before, after)
			}
		}
		least := 1 - float64(min(c.from, c.to))/float64(max(c.from, c.to))
		if share := float64(moved) / orders; share < least-0.01 || share > least+0.01 {
			t.Errorf("from %d to %d queues, %.3f of the orders moved, want %.3f", c.from, c.to, share, least)
		}
		for queue, n := range counts {
			if even := float64(orders) / float64(c.to); float64(n) < 0.9*even || float64(n) > 1.1*even {
				t.Errorf("queue %d of %d has %d orders, want about %.0f", queue, c.to, n, even)
			}
		}
	}
}
