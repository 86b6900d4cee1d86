package store

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// A write that is repeated below the step that knows its test hides the first copy, which may still arrive. A read may be repeated.
func TestNoWriteIsRepeatedByItself(t *testing.T) {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker-a", Namespace: "shop", UID: "u"}}
	for name, code := range map[string]int{"an error of the server": http.StatusServiceUnavailable, "too many requests": http.StatusTooManyRequests} {
		for what, write := range map[string]func(*Store) error{
			"a receipt": func(s *Store) error { _, err := s.SwapLock(t.Context(), pod, "", locks()); return err },
			"a map": func(s *Store) error {
				_, err := s.Propose(t.Context(), Owner{Ref: theRef()}, assignment.State{})
				return err
			},
			"a Lease":   func(s *Store) error { _, err := s.PutLease(t.Context(), theRef(), theLease("a", "1")); return err },
			"a new one": func(s *Store) error { _, err := s.PutLease(t.Context(), theRef(), theLease("a", "")); return err },
			"an Event": func(s *Store) error {
				return s.Tell(t.Context(), kubeevent.Event{Namespace: "shop", Reason: "R", Type: kubeevent.Normal})
			},
		} {
			var requests atomic.Int32
			s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "0")
				if requests.Add(1) > 1 {
					say(w, &metav1.Status{Code: http.StatusForbidden, Message: "the second copy is refused"})
					return
				}
				say(w, &metav1.Status{Code: int32(code), Reason: "InternalError"}) //nolint:gosec // a status of HTTP
			})
			err := write(s)
			if !request.Temporary(err) || code == http.StatusServiceUnavailable && what != "an Event" && !errors.Is(err, request.ErrAmbiguous) || requests.Load() != 1 {
				t.Errorf("%s, %s: %d requests, and %v", what, name, requests.Load(), err)
			}
		}
	}
	var requests atomic.Int32
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			say(w, &metav1.Status{Code: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"})
			return
		}
		w.Header().Set("Content-Type", jsonType)
		send(w, aPod(map[string]any{receipt.Key: locks().Encode()}, nil))
	})
	if now, err := s.GetPod(t.Context(), "shop", "worker-a"); err != nil || now.UID != "u" {
		t.Errorf("a read is answered with %v, %v", now, err)
	}
}
