package simulation

import (
	"context"
	"errors"
	"os"
	"strings"
)

// Hunt plays seeds, from 1 on with all faults, with changed files of the module (by path, with their content) until a promise is
// broken. It builds in dir, and returns how many seeds it played and what was broken, "" for nothing.
func Hunt(ctx context.Context, dir string, changed map[string]string, most int) (seeds int, broken string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return 0, "", err
	}
	program, err := Build(dir, changed, false)
	if err != nil {
		return 0, "", err
	}
	total, err := playOutside(ctx, program, options{seeds: most, first: 1, workers: 1, pass: []string{"-catch"}})
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
