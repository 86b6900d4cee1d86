package main

import (
	"errors"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/internal/cli"
)

// bindSettings adds the flags of the decision settings.
func bindSettings(f *pflag.FlagSet, s *decide.Settings) {
	f.Float64Var(&s.Capacity, "capacity", 0, "units per second that one pod works off, required")
	f.Float64Var(&s.Margin, "margin", 0, "units per second kept free for each partition")
	f.Float64Var(&s.Spare, "spare", 0.1, "share of each pod that must stay free when pods go")
	f.IntVar(&s.Min, "min-replicas", 1, "fewest pods")
	f.IntVar(&s.Max, "max-replicas", 0, "most pods, required")
	f.DurationVar(&s.Every, "every", 30*time.Second, "shortest time between two targets")
	f.DurationVar(&s.AfterUp, "after-up", 3*time.Minute, "time after a change of the number until it grows")
	f.DurationVar(&s.AfterDown, "after-down", 5*time.Minute, "time after a change of the number until it falls")
	f.DurationVar(&s.MaxAge, "max-age", time.Minute, "age of data on which nothing is decided")
	f.DurationVar(&s.Patience, "patience", 2*time.Minute, "time that pods may take to come, and partitions to move")
}

// checkSettings checks the settings of an autoscaler that decides once per period.
func checkSettings(s decide.Settings, period time.Duration) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, cli.Usagef(format, args...))
		}
	}
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	works := s.Capacity > 0 && finite(s.Capacity)
	check(works, "--capacity %g: say what one pod works off in units per second, as a number above 0", s.Capacity)
	check(s.Margin >= 0 && finite(s.Margin) && (s.Margin < s.Capacity || !works), "--margin %g: use a number from 0 to below --capacity", s.Margin)
	check(s.Spare >= 0 && s.Spare < 1, "--spare %g: use a share from 0 to below 1, such as 0.1", s.Spare)
	check(s.Min >= 1, "--min-replicas %d: use 1 or more: nothing measures a workload that has no pods", s.Min)
	check(s.Max >= s.Min, "--max-replicas %d: say how many pods there may be, at least --min-replicas %d", s.Max, s.Min)
	for name, d := range map[string]time.Duration{
		"every": s.Every, "after-up": s.AfterUp, "after-down": s.AfterDown, "max-age": s.MaxAge, "patience": s.Patience,
	} {
		check(d > 0, "--%s %s: use a time above 0", name, d)
	}
	check(s.MaxAge >= period, "--max-age %s: use at least --period %s, or the loads are too old before they are read again", s.MaxAge, period)
	return errors.Join(errs...)
}
