// Package loop measures, decides and writes again and again. Package decide makes the decisions. This package does the I/O and reports to the log, in Events
// and to an observer.
package loop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Source reports how fast partitions grow.
type Source interface {
	// Read reads all partitions at once. It blocks until the source has answered, or ctx ends.
	Read(ctx context.Context) (monitor.Reading, error)
}

// Loop is the autoscaler of one workload.
type Loop struct {
	Workload workload.Workload
	Source   Source
	Monitor  *monitor.Monitor
	Decider  *decide.Decider
	// Period is the time between two readings.
	Period time.Duration
	// DryRun: only report what would be done.
	DryRun bool
	// KeepPods: do not change the number of pods. Another program sets it to the number in the Report.
	KeepPods bool
	// Reporter is the name that Events carry.
	Reporter string
	Clock    clock.WithTicker
	Log      logr.Logger
	// Observe is called with a Report after each step. It may be nil.
	Observe func(Report)

	decisions, errors notes
}

// Report is what one step saw and did.
type Report struct {
	Now  time.Time
	Seen decide.Seen
	// Decision is the zero value if the owner could not be read.
	Decision decide.Decision
	// Done is true if the decision was written.
	Done bool
	// SourceErr is the error from reading the source, Err the error from reading or writing the owner.
	SourceErr, Err error
}

// Run takes steps until ctx ends or the workload is gone. It returns nil, or an error that wraps request.ErrGone.
func (l *Loop) Run(ctx context.Context) error {
	tick := l.Clock.NewTicker(l.Period)
	defer tick.Stop()
	for {
		if err := l.Step(ctx).Err; errors.Is(err, request.ErrGone) {
			return fmt.Errorf("%s in namespace %s is gone: %w", l.Workload.Ref, l.Workload.Ref.Namespace, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// Step measures, decides and writes once.
func (l *Loop) Step(ctx context.Context) Report {
	r := Report{SourceErr: l.measure(ctx)}
	r.Err = l.act(ctx, &r)
	if ctx.Err() != nil {
		return r // any failure is a consequence of that
	}
	l.complain(r)
	if l.Observe != nil {
		l.Observe(r)
	}
	return r
}

func (l *Loop) measure(ctx context.Context) error {
	reading, err := l.Source.Read(ctx)
	if err != nil {
		return err
	}
	return l.Monitor.Add(reading)
}

func (l *Loop) act(ctx context.Context, r *Report) error {
	m, err := l.Workload.Read(ctx)
	r.Now = l.Clock.Now()
	if err != nil {
		l.Decider.Missed()
		return err
	}
	m.Loads = l.Monitor.Loads(m.Partitions)
	r.Seen = m.Seen
	d := l.Decider.Decide(m.Seen, r.Now)
	r.Decision = d
	l.say(d, r.Now)
	if d.Undone != nil && !l.DryRun {
		l.tell(ctx, m, kubeevent.Warning, "ScalingUndone", d.Undone.String())
	}
	switch {
	case l.KeepPods && d.Action == decide.Scale:
		l.Decider.Published(d)
		return nil
	case l.DryRun || d.Action == decide.Nothing:
		return nil
	}
	if d.Action == decide.Assign {
		err = l.Workload.Assign(ctx, m, d.Target)
	} else {
		err = l.Workload.Scale(ctx, m, d.Wanted)
	}
	if err != nil {
		return err
	}
	r.Done = true
	l.Decider.Wrote(d, r.Now)
	l.tell(ctx, m, kubeevent.Normal, eventReason(d.Action), d.Why)
	return nil
}

// say logs a decision. It always logs what was done. It logs a lasting state once, and lasting trouble from time to time. Verbosity 1 logs each step.
func (l *Loop) say(d decide.Decision, now time.Time) {
	verbosity, key := 1, string(d.Phase)+withoutNumbers(d.Why)
	if d.Action == decide.Scale { // a published number is news, even if nothing else in the sentence has changed
		key += strconv.Itoa(d.Wanted)
	}
	due := l.decisions.due(key, d.Warn || d.Phase == decide.Blind, now)
	if acts := d.Action != decide.Nothing && !l.DryRun && (!l.KeepPods || d.Action != decide.Scale); acts || due {
		verbosity = 0
	}
	l.Log.V(verbosity).Info(l.prefix(d)+d.Why, "phase", d.Phase, "action", d.Action, "reason", d.Reason, "wanted", d.Wanted, "dryRun", l.DryRun)
}

func (l *Loop) prefix(d decide.Decision) string {
	switch {
	case d.Action == decide.Nothing:
		return ""
	case l.DryRun:
		return "would act: "
	case l.KeepPods && d.Action == decide.Scale:
		return "published for who scales: "
	}
	return ""
}

// fine is logged when errors are over.
const fine = "the workload and its loads can be read again"

// complain logs errors: each cause once, from time to time while it lasts, and when it is over.
func (l *Loop) complain(r Report) {
	text, now := "", l.Clock.Now()
	switch {
	case errors.Is(r.Err, request.ErrConflict):
		l.Log.V(1).Info("the workload changed in between; the next step decides again", "reason", r.Err.Error())
		return
	case r.Err != nil:
		text = r.Err.Error()
	case r.SourceErr != nil:
		text = "the loads cannot be read: " + r.SourceErr.Error()
	case l.errors.last != "" && l.errors.due(fine, false, now):
		l.Log.Info(fine)
	}
	if text != "" && l.errors.due(withoutNumbers(text), true, now) {
		l.Log.Error(nil, text)
	}
}

// eventReason returns the reason of the Event for an action.
func eventReason(action decide.Action) string {
	if action == decide.Scale {
		return "AutoscalerScaled"
	}
	return "PartitionsMoved"
}

// tell writes an Event about the workload. It tries only once.
func (l *Loop) tell(ctx context.Context, m workload.Moment, kind, reason, message string) {
	err := l.Workload.Store.Tell(ctx, kubeevent.Event{
		About: m.Owner.About(), Namespace: m.Owner.Namespace, Reporter: l.Reporter, Type: kind, Reason: reason, Message: message,
	})
	if err != nil {
		l.Log.V(1).Info("an Event could not be written", "reason", err.Error())
	}
}
