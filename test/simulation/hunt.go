package simulation

import (
	"context"
	"errors"
	"strings"
)

// caught is how a mutant was found out.
type caught struct {
	// seeds is how many were needed; 0 means that it got away.
	seeds int
	seed  uint64
	how   string
}

// catch plays seeds in a program, one after the other, until a promise is broken, or the program does not survive a seed.
func catch(ctx context.Context, program string, o options) (caught, error) {
	o.workers, o.pass = 1, append([]string{"-catch"}, o.pass...)
	total, err := playOutside(ctx, program, o)
	switch {
	case ctx.Err() != nil:
		return caught{}, errors.Join(ctx.Err(), err)
	case len(total.failed) > 0:
		r := total.failed[0]
		return caught{seeds: total.histories, seed: r.Seed, how: r.Violations[0]}, nil
	case err != nil && total.histories < o.seeds:
		return caught{seeds: total.histories + 1, seed: o.first + uint64(total.histories), how: beginning(err)}, nil //nolint:gosec // small
	}
	return caught{}, err
}

// beginning is what an error says first.
func beginning(err error) string {
	lines := strings.SplitN(err.Error(), "\n", 4)
	return strings.Join(lines[:min(3, len(lines))], " ")
}

// Hunt has a program that overlay.Build built play seeds, from 1 on with all faults, until a promise is broken. env is added to its environment.
// Hunt returns how many seeds it needed and what was broken, "" for nothing.
func Hunt(ctx context.Context, program string, most int, env ...string) (seeds int, broken string, err error) {
	c, err := catch(ctx, program, options{seeds: most, first: 1, env: env})
	if err != nil && ctx.Err() == nil { // it did not survive its end
		return most, beginning(err), nil
	}
	return c.seeds, c.how, err
}
