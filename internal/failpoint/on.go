//go:build failpoints

package failpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// Variable is "N:FAULT:FILE". The fault happens at the N-th write, counted from 1, of the process that first creates FILE. It happens once: not again when
	// that process is started again.
	Variable = "IDALLOC_FAILPOINT"
	// stall is longer than a request may take. late is when the program has already continued without an answer.
	stall, late = 20 * time.Second, 2 * time.Second
)

var errLost = errors.New("failpoint: no answer")

// Wrap makes one write fail as Variable describes.
func Wrap(config *rest.Config) {
	parts := strings.SplitN(os.Getenv(Variable), ":", 3)
	if len(parts) < 3 {
		return
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", Variable, err))
	}
	var count atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if !counts(r) || count.Add(1) != number {
				return next.RoundTrip(r)
			}
			switch file, err := os.OpenFile(parts[2], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); {
			case errors.Is(err, fs.ErrExist):
				return next.RoundTrip(r)
			case err != nil:
				panic(err)
			default:
				_, _ = file.WriteString(r.Method + " " + r.URL.Path)
				_ = file.Close()
			}
			return fail(parts[1], next, r)
		})
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// counts reports whether a request changes a workload, a pod or a Lease.
func counts(r *http.Request) bool {
	path := r.URL.Path
	return r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && !strings.HasSuffix(path, "/events") && !strings.HasSuffix(path, "reviews")
}

func fail(fault string, next http.RoundTripper, r *http.Request) (*http.Response, error) {
	switch fault {
	case "crash": // before it is sent
		return nil, crash()
	case "after": // after it is carried out
		if _, err := next.RoundTrip(r); err != nil {
			return nil, err
		}
		return nil, crash()
	case "error":
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Status: "500 failpoint", Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"failpoint"}`)),
		}, nil
	case "lost": // it is carried out, and its answer is lost
		answer, err := next.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return nil, errLost
	case "stall": // it hangs, and is never sent
		select {
		case <-r.Context().Done():
		case <-time.After(stall):
		}
		return nil, errLost
	case "late": // the program has no answer and continues; then it is carried out, if its conditions hold
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		time.AfterFunc(late, func() {
			if answer, err := next.RoundTrip(again); err == nil {
				_ = answer.Body.Close()
			}
		})
		return nil, errLost
	}
	panic(fmt.Sprintf("%s: fault %q", Variable, fault))
}

func crash() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
