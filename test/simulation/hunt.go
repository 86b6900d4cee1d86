package simulation

import (
	"context"
	"errors"
	"strings"
)

// Hunt has a program that Build built play seeds, from 1 on with all faults, until a promise is broken. env is added to its environment.
// Hunt returns how many seeds it played and what was broken, "" for nothing.
func Hunt(ctx context.Context, program string, most int, env ...string) (seeds int, broken string, err error) {
	total, err := playOutside(ctx, program, options{seeds: most, first: 1, workers: 1, pass: []string{"-catch"}, env: env})
	switch {
	case ctx.Err() != nil:
		return total.histories, "", errors.Join(ctx.Err(), err)
	case len(total.failed) > 0:
		return total.histories, total.failed[0].Violations[0], nil
	case err != nil: // it did not survive the next seed
		lines := strings.SplitN(err.Error(), "\n", 4)
		return total.histories + 1, strings.Join(lines[:min(3, len(lines))], " "), nil
	}
	return total.histories, "", nil
}
