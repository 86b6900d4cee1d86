package store

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	testAPIVersion = "apps/v1"
	testName       = "worker"
	jsonType       = "application/json"
)

// answering returns a Store whose server answers every request like this.
func answering(t *testing.T, answer http.HandlerFunc) *Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s, err := New(&rest.Config{Host: server.URL, Timeout: 10 * time.Second}, testclock.NewFakeClock(testTime))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// named are the requests about one object, a Deployment or a pod, called name.
func named(s *Store, name string) map[string]func(t *testing.T) error {
	ref := kinds.Ref{APIVersion: testAPIVersion, Kind: kinds.Deployment, Namespace: "default", Name: name}
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u"}}
	return map[string]func(t *testing.T) error{
		"get owner": func(t *testing.T) error { t.Helper(); _, err := s.GetOwner(t.Context(), ref); return err },
		"metadata":  func(t *testing.T) error { t.Helper(); _, err := s.GetMetadata(t.Context(), ref); return err },
		"whole":     func(t *testing.T) error { t.Helper(); _, err := s.GetWhole(t.Context(), ref); return err },
		"get pod":   func(t *testing.T) error { t.Helper(); _, err := s.GetPod(t.Context(), "default", name); return err },
		"whole pod": func(t *testing.T) error { t.Helper(); _, err := s.GetFullPod(t.Context(), "default", name); return err },
		"propose": func(t *testing.T) error {
			t.Helper()
			_, err := s.Propose(t.Context(), Owner{Ref: ref}, assignment.State{})
			return err
		},
		"lock": func(t *testing.T) error {
			t.Helper()
			_, err := s.SwapLock(t.Context(), pod, "", receipt.Receipt{UID: "u"})
			return err
		},
	}
}

// A client refuses to send "..", so to repeat that is to wait for ever.
func TestWhatIsNeverSentIsNotUnanswered(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for what, send := range named(s, "..") {
		t.Run(what, func(t *testing.T) {
			if err := send(t); err == nil || request.Temporary(err) {
				t.Errorf("repeating does not help, got %v", err)
			}
		})
	}
}

func TestBrokenConnectionIsUnanswered(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	requests := named(s, testName)
	for _, what := range []string{"propose", "lock"} { // the client repeats others, for seconds
		t.Run(what, func(t *testing.T) {
			if err := requests[what](t); !errors.Is(err, request.ErrAmbiguous) || !request.Temporary(err) {
				t.Errorf("want ErrAmbiguous, got %v", err)
			}
		})
	}
}

func TestCredentialsThatAreNotAcceptedAreToBeRenewed(t *testing.T) {
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	if err := named(s, testName)["get owner"](t); !request.Temporary(err) || !strings.Contains(err.Error(), "renew them") {
		t.Errorf("got %v", err)
	}
}

// A pod that is gone loses its slot, so only an API server's word about that very object counts.
func TestOnlyTheServersWordMeansGone(t *testing.T) {
	status := func(of request.Target) string {
		b, err := json.Marshal(apierrors.NewNotFound(schema.GroupResource{Group: of.GVR.Group, Resource: of.GVR.Resource}, of.Name).ErrStatus)
		if err != nil {
			t.Fatal(err)
		}
		return `{"kind":"Status","apiVersion":"v1",` + string(b[1:])
	}
	worker := theRef().GVR()
	for name, tc := range map[string]struct {
		content, body string
		gone          []string
	}{
		"the owner":         {jsonType, status(request.Target{GVR: worker, Namespace: "", Name: testName}), []string{"get owner", "whole", "metadata", "propose"}},
		"the pod":           {jsonType, status(podTarget("", testName)), []string{"get pod", "whole pod", "lock"}},
		"another object":    {jsonType, status(request.Target{GVR: worker, Namespace: "", Name: "other"}), nil},
		"the namespace":     {jsonType, status(request.Target{GVR: schema.GroupVersionResource{Resource: "namespaces"}, Namespace: "", Name: "default"}), nil},
		"no details":        {jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, nil},
		"a proxy's page":    {"text/html", "<html><h1>404 Not Found</h1></html>", nil},
		"a proxy's JSON":    {jsonType, `{"error":"no route"}`, nil},
		"a missing route":   {"text/plain", "404 page not found", nil},
		"an empty answer":   {jsonType, "", nil},
		"nothing but a 404": {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.content != "" {
					w.Header().Set("Content-Type", tc.content)
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(tc.body)) // the client notices what is missing
			})
			for what, send := range named(s, testName) {
				err := send(t)
				if want := slices.Contains(tc.gone, what); errors.Is(err, request.ErrGone) != want || request.Temporary(err) == want {
					t.Errorf("%s: gone is to be %t, got %v", what, want, err)
				}
			}
			if err := s.EachPod(t.Context(), "default", metav1.ListOptions{}, func(*metav1.PartialObjectMetadata) {}); !errors.Is(err, request.ErrNoAnswer) {
				t.Errorf("list: want ErrNoAnswer, got %v", err)
			}
		})
	}
}
