package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

const (
	// mostReads bounds how often Verify reads an owner that changes all the time.
	mostReads = 5
	// retryDelay is how long Await waits before it sends another request to an API server that could not answer.
	retryDelay = time.Second
)

// Verify checks an owner against its live pods. It reads the owner first and the pods second. If it finds something wrong, but
// the owner has changed meanwhile, the finding may never have been true, so it reads everything again. Errors: store.ErrGone,
// *store.ForbiddenError, or another error that store.Temporary judges.
func Verify(ctx context.Context, s *store.Store, ref store.Ref) (Report, error) {
	for reads := 1; ; reads++ {
		now, err := read(ctx, s, ref)
		if err != nil {
			return Report{}, err
		}
		if err := now.readRollout(ctx, s); err != nil {
			return Report{}, err
		}
		report := check(now)
		if report.OK || reads == mostReads || now.rollout.resourceVersion == now.owner.ResourceVersion {
			return report, nil
		}
	}
}

// Await repeats Verify at each change of the owner or its pods. It blocks until a report has no findings, until patience is over,
// or until ctx ends, and returns the last report. With warnings, it also waits until there are none. It waits as well if the
// workload does not use idalloc yet, because that may change. Errors: as of Verify. A temporary error ends Await only in the first
// report.
func Await(ctx context.Context, s *store.Store, ref store.Ref, patience time.Duration, warnings bool, log logr.Logger) (Report, error) {
	enough := func(r Report) bool { return r.OK && !r.Unused && (!warnings || len(r.Warnings) == 0) }
	over := s.Clock.NewTimer(patience)
	defer over.Stop()
	report, err := Verify(ctx, s, ref)
	if err != nil || enough(report) || patience <= 0 {
		return report, err
	}
	first, err := s.Get(ctx, ref)
	if err != nil {
		return report, err
	}
	n := follow(ctx, s, first, log)
	defer n.close()
	retry := s.Clock.NewTimer(patience)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return report, context.Cause(ctx)
		case <-over.C():
			return report, err
		case <-n.owner.Changed():
		case <-n.owned.Changed():
		case <-n.labelled.Changed():
		case <-retry.C():
		}
		if err := n.denied(first.Ref); err != nil {
			return report, err
		}
		report, err = Verify(ctx, s, ref)
		if store.Temporary(err) {
			retry.Reset(retryDelay)
			continue
		}
		if err != nil || enough(report) {
			return report, err
		}
	}
}

// news are the watches that tell when to verify again.
type news struct {
	cancel          context.CancelFunc
	owner           *watch.OwnerStream
	owned, labelled *watch.PodStream
}

func follow(ctx context.Context, s *store.Store, owner store.Owner, log logr.Logger) news {
	ctx, cancel := context.WithCancel(ctx)
	return news{
		cancel: cancel,
		owner:  watch.Owner(ctx, s, owner.Ref, log), owned: watch.Selected(ctx, s, owner.Namespace, owner.Selector, log),
		labelled: watch.Selected(ctx, s, owner.Namespace, assignment.HoldersSelector(owner.String()), log),
	}
}

func (n news) close() {
	n.cancel()
	<-n.owner.Done()
	<-n.owned.Done()
	<-n.labelled.Done()
}

// denied returns a *store.ForbiddenError if RBAC does not permit one of the watches.
func (n news) denied(ref store.Ref) error {
	if d := n.owner.Denied(); d.Err != nil {
		return store.Forbidden(d.Verb, ref.GVR(), ref.Namespace, ref.Name, d.Err)
	}
	for _, pods := range []*watch.PodStream{n.owned, n.labelled} {
		if d := pods.Denied(); d.Err != nil {
			return store.Forbidden(d.Verb, store.Pods, ref.Namespace, "", d.Err)
		}
	}
	return nil
}

// Table writes a line for each finding and each warning, and a last line with the verdict. For a workload that does not use
// idalloc, it writes only that.
func (r Report) Table(w io.Writer) error {
	if r.Unused {
		_, err := fmt.Fprintln(w, strings.Join(r.Warnings, "\n"))
		return err
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%s: %s\n", f.Kind, f.Detail); err != nil {
			return err
		}
	}
	for _, warning := range r.Warnings {
		if _, err := fmt.Fprintf(w, "warning: %s\n", warning); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", note); err != nil {
			return err
		}
	}
	verdict, partitions := "ok", ""
	if !r.OK {
		verdict = "not ok"
	}
	if r.Partitions != nil {
		partitions = fmt.Sprintf("; they lock %d of %d partitions", r.Partitions.Locked, r.Partitions.Count)
	}
	_, err := fmt.Fprintf(w, "%s: %s: live pods hold %d of %d ids, %d wait%s\n", r.Owner, verdict, r.Held, r.Count, r.Waiting, partitions)
	return err
}
