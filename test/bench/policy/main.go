// Policy measures what the expressions of config/policy cost for one request, with the API server's own evaluation:
//
//	go -C test/bench/policy run .
//
// It prints a table. Cost is in the units in which the API server counts, and it refuses a request that costs more than its limits.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	limits "k8s.io/apiserver/pkg/apis/cel"
)

const (
	file = "../../../config/policy/policy.yaml"
	// times is how often each request is judged. The first ones build what is kept.
	times = 31
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	p, err := load(file)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "| request | condition, of %d | validations and sentences, of %d | median |\n| --- | --- | --- | --- |\n",
		limits.RuntimeCELCostBudgetMatchConditions, limits.RuntimeCELCostBudget)
	for _, r := range requests() {
		var c cost
		took := make([]time.Duration, times)
		for i := range took {
			if c, err = p.judge(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			took[i] = c.took
		}
		slices.Sort(took)
		fmt.Fprintf(&text, "| %s | %d | %d | %v |\n", r.name, c.condition, c.validations+c.messages, took[times/2].Round(10*time.Microsecond))
	}
	_, err = io.WriteString(out, text.String())
	return err
}
