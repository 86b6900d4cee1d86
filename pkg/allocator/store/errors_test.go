package store

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// answering returns a Store whose server answers every request like this.
func answering(t *testing.T, answer http.HandlerFunc) *Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s, err := New(&rest.Config{Host: server.URL, Timeout: 10 * time.Second}, "", testclock.NewFakeClock(testTime))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// named are the requests about one object, a Deployment or a pod, called name.
func named(s *Store, name string) map[string]func(t *testing.T) error {
	ref := Ref{APIVersion: "apps/v1", Kind: Deployment, Namespace: "default", Name: name}
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u"}}
	return map[string]func(t *testing.T) error{
		"get owner": func(t *testing.T) error { _, err := s.Get(t.Context(), ref); return err },
		"metadata":  func(t *testing.T) error { _, err := s.GetMetadata(t.Context(), ref); return err },
		"get pod":   func(t *testing.T) error { _, err := s.GetPod(t.Context(), "default", name); return err },
		"whole pod": func(t *testing.T) error { _, err := s.GetFullPod(t.Context(), "default", name); return err },
		"W1": func(t *testing.T) error {
			_, err := s.Commit(t.Context(), Owner{Ref: ref}, assignment.State{})
			return err
		},
		"W2": func(t *testing.T) error {
			_, err := s.SwapReceipt(t.Context(), pod, &assignment.Receipt{UID: "u"}, false)
			return err
		},
	}
}

// A client refuses to send "..". Whoever repeats that waits for ever.
func TestWhatIsNeverSentIsNotUnanswered(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for what, request := range named(s, "..") {
		t.Run(what, func(t *testing.T) {
			if err := request(t); err == nil || Temporary(err) {
				t.Errorf("repeating does not help, got %v", err)
			}
		})
	}
}

func TestBrokenConnectionIsUnanswered(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	requests := named(s, "worker")
	for _, what := range []string{"W1", "W2"} { // the client repeats others, for seconds
		t.Run(what, func(t *testing.T) {
			if err := requests[what](t); !errors.Is(err, ErrAmbiguous) || !Temporary(err) {
				t.Errorf("want ErrAmbiguous, got %v", err)
			}
		})
	}
}
