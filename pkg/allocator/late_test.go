package allocator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// wire answers requests without a socket, so that it can be used in a bubble.
type wire func(r *http.Request) ([]byte, error)

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := w(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, nil
}

// A mesh's proxy that starts later, or a NetworkPolicy. Nobody can be told while it lasts.
func TestAnAPIServerThatDidNotAnswerAtTheStartIsToldOfWhenItDoes(t *testing.T) {
	for away, told := range map[time.Duration]bool{time.Second: false, 3 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			pod := apifake.Pod("a")
			pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: "StatefulSet", Name: "s", UID: "s", Controller: new(true)}})
			begin := time.Now()
			var events []string
			s, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: wire(func(r *http.Request) ([]byte, error) {
				switch {
				case time.Since(begin) < away:
					return nil, errors.New("i/o timeout")
				case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
					body, err := io.ReadAll(r.Body)
					events = append(events, string(body))
					return body, err
				case strings.HasSuffix(r.URL.Path, "/pods/a"):
					return json.Marshal(pod)
				}
				return nil, errors.New("not now")
			})}, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := allocator.New(t.Context(), allocator.Options{Store: s, Pod: "a", PodUID: apifake.UIDOf("a"), Namespace: apifake.Namespace, Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := a.Run(ctx); !errors.Is(err, allocator.ErrNoSlot) {
				t.Error(err)
			}
			if all := strings.Join(events, " "); (all != "") != told || told && (!strings.Contains(all, "WaitingForSlot") || !strings.Contains(all, "no answer for 3m") || !strings.Contains(all, "i/o timeout")) {
				t.Errorf("away for %s: %s", away, all)
			}
		})
	}
}
