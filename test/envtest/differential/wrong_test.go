package differential

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/simulation/server"
)

// wrong is a server that changes the answers of another one.
type wrong struct {
	next   http.RoundTripper
	change func(req *http.Request, resp *http.Response)
}

// RoundTrip implements http.RoundTripper.
func (w wrong) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil {
		w.change(req, resp)
	}
	return resp, err
}

func changing(change func(req *http.Request, resp *http.Response)) http.RoundTripper {
	return wrong{next: simulator(), change: change}
}

// replaced has a text in each answer, but not in watches, be another one.
func replaced(from, to string) http.RoundTripper {
	return changing(func(req *http.Request, resp *http.Response) {
		if isWatch(req.URL.Query()) {
			return
		}
		body, err := io.ReadAll(resp.Body)
		if err == nil {
			body = bytes.ReplaceAll(body, []byte(from), []byte(to))
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
	})
}

// against returns a bench of the simulated server and of another one.
func against(other func() http.RoundTripper) bench {
	return func(ctx context.Context) (a, b *side, err error) {
		if a, err = simulated(ctx, simulator()); err != nil {
			return nil, nil, err
		}
		b, err = simulated(ctx, other())
		return a, b, err
	}
}

// found compares up to so many sequences and returns the first report.
func found(t *testing.T, both bench, sequences uint64) string {
	t.Helper()
	for number := range sequences {
		if report := compare(t, both, newGenerator(1, number).sequence(*lengthFlag)); report != "" {
			return report
		}
	}
	return ""
}

func TestAServerDoesNotDifferFromItself(t *testing.T) {
	if report := found(t, against(simulator), 5); report != "" {
		t.Error(report)
	}
}

// TestAWrongServerIsFound shows that the comparison can fail.
func TestAWrongServerIsFound(t *testing.T) {
	cases := map[string]func() http.RoundTripper{
		"generation does not follow a Deployment's annotations": func() http.RoundTripper {
			s := server.NewStandalone()
			s.Misjudge()
			return s
		},
		"a failed test is a conflict": func() http.RoundTripper {
			return changing(func(_ *http.Request, resp *http.Response) {
				if resp.StatusCode == http.StatusUnprocessableEntity {
					resp.StatusCode = http.StatusConflict
				}
			})
		},
		"another reason":            func() http.RoundTripper { return replaced(`"reason":"NotFound"`, `"reason":"Gone"`) },
		"another holder of a Lease": func() http.RoundTripper { return replaced(`"holderIdentity":"p/u"`, `"holderIdentity":"q/u"`) },
		"no pod is being deleted":   func() http.RoundTripper { return replaced(`"deletionTimestamp"`, `"delayedTimestamp"`) },
		"a phase is lost":           func() http.RoundTripper { return replaced(`"phase":"Running"`, `"phase":"Pending"`) },
	}
	for name, other := range cases {
		t.Run(name, func(t *testing.T) {
			report := found(t, against(other), 30)
			if report == "" {
				t.Fatal("no difference was found")
			}
			if !strings.Contains(report, "1. ") || !strings.Contains(report, "simulated: ") {
				t.Errorf("the report does not say what was done and what was seen: %s", report)
			}
			t.Log(name + ": after " + strconv.Itoa(strings.Count(report[:strings.LastIndex(report, ". ")], "\n")+1) + " steps")
		})
	}
}
