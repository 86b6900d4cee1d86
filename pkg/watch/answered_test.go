package watch

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a stream says of itself follows from the answers to its requests, one after the other.
func TestWhatAStreamSaysOfItsAnswers(t *testing.T) {
	const list, watch = false, true
	errA, errB := errors.New("a"), errors.New("b")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errA)
	began := time.UnixMilli(1795219200123)
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	var now time.Time
	s := &PodStream{changed: make(chan struct{}, 1), now: func() time.Time { return now }}
	for i, step := range []struct {
		name    string
		err     error
		isWatch bool
		// told says that a caller that waits for a change is woken.
		told  bool
		stale error
		since int
		verb  string // of a refusal, "" for none
		first int
		last  int
	}{
		{name: "no list", err: errA, told: true, stale: errA, since: 0},
		{name: "no watch, for another reason", err: errB, isWatch: watch, stale: errB, since: 0},
		{name: "a list again, but no watch yet", isWatch: list, stale: errB, since: 0},
		{name: "lists are forbidden", err: forbidden, told: true, stale: forbidden, since: 0, verb: "list", first: 3, last: 3},
		{name: "lists are permitted again", isWatch: list, stale: forbidden, since: 0, verb: "list", first: 3, last: 3},
		{name: "watches are forbidden", err: forbidden, isWatch: watch, told: true, stale: forbidden, since: 0, verb: "watch", first: 3, last: 5},
		{name: "the stream ends", err: context.Canceled, stale: forbidden, since: 0, verb: "watch", first: 3, last: 5},
		{name: "no list, but for RBAC", err: errA, stale: errA, since: 0},
		{name: "lists are forbidden again", err: forbidden, told: true, stale: forbidden, since: 0, verb: "list", first: 8, last: 8},
		{name: "a watch", isWatch: watch, told: true, since: 9},
		{name: "another watch", isWatch: watch, since: 9},
		{name: "a version that has expired", err: apierrors.NewResourceExpired("old"), isWatch: watch, since: 9},
		{name: "a version that is gone", err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonGone}}, isWatch: watch, since: 9},
		{name: "forbidden after it was permitted", err: forbidden, told: true, stale: forbidden, since: 13},
		{name: "a watch at last", isWatch: watch, told: true, since: 14},
	} {
		now = at(i)
		s.answered(step.err, step.isWatch)
		told := false
		select {
		case <-s.Changed():
			told = true
		default:
		}
		if told != step.told {
			t.Errorf("%s: told %t, want %t", step.name, told, step.told)
		}
		if since, why := s.Stale(); !errors.Is(why, step.stale) || (why == nil) != (step.stale == nil) || !since.Equal(at(step.since)) {
			t.Errorf("%s: stale since %s because of %v, want since %s because of %v", step.name, since.Sub(began), why, at(step.since).Sub(began), step.stale)
		}
		want := Denial{}
		if step.verb != "" {
			want = Denial{Err: forbidden, Verb: step.verb, First: at(step.first), Last: at(step.last)}
		}
		if got := s.Denied(); got != want || got.Lasted() != want.Last.Sub(want.First) {
			t.Errorf("%s: denied %+v, want %+v", step.name, got, want)
		}
	}
}
