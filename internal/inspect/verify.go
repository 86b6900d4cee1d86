package inspect

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	// mostReads limits how often Verify reads an owner that changes all the time.
	mostReads = 5
	// retryDelay is how long Await waits before it asks an API server again that could not answer.
	retryDelay = time.Second
)

// Verify checks an owner against its live pods. It reads the owner first and the pods second. If it finds something wrong, but the owner has changed meanwhile,
// it reads everything again, because the finding may never have been true. Errors: request.ErrGone, *request.ForbiddenError, or another error that request.Temporary
// judges.
func Verify(ctx context.Context, s *store.Store, ref kinds.Ref) (Report, error) {
	for reads := 1; ; reads++ {
		now, err := read(ctx, s, ref)
		if err != nil {
			return Report{}, err
		}
		if err := now.readRollout(ctx, s); err != nil {
			return Report{}, err
		}
		now.tryWrites(ctx, s)
		now.tryMap(ctx, s)
		report := reportOf(factsOf(now))
		if report.OK || reads == mostReads || now.rollout.resourceVersion == now.owner.ResourceVersion {
			return report, nil
		}
	}
}

// Await repeats Verify at each change of the owner or its pods. It blocks until a report has no findings, until patience is over, or until ctx ends, and
// returns the last report. With warnings, it also waits until there are none. It also waits if the workload does not use idalloc yet. Errors: as of Verify. A
// temporary error ends Await only in the first report.
func Await(ctx context.Context, s *store.Store, ref kinds.Ref, patience time.Duration, warnings bool, log logr.Logger) (Report, error) {
	enough := func(r Report) bool { return r.OK && !r.Unused && (!warnings || len(r.Warnings) == 0) }
	over := s.Clock.NewTimer(patience)
	defer over.Stop()
	report, err := Verify(ctx, s, ref)
	if err != nil || enough(report) || patience <= 0 {
		return report, err
	}
	news, err := Watch(ctx, s, []kinds.Ref{ref}, log)
	if err != nil {
		return report, err
	}
	defer news.Close()
	retry := s.Clock.NewTimer(patience)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return report, context.Cause(ctx)
		case <-over.C():
			return report, err
		case <-news.Changed:
		case <-retry.C():
		}
		if err := news.Denied(); err != nil {
			return report, err
		}
		report, err = Verify(ctx, s, ref)
		if request.Temporary(err) {
			retry.Reset(retryDelay)
			continue
		}
		if err != nil || enough(report) {
			return report, err
		}
	}
}
