package allocator_test

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// Storage that is not etcd counts from where it likes, such as the nanoseconds of its clock.
func TestATokenHasAllDigitsOfItsVersion(t *testing.T) {
	for _, from := range []int64{1000, 1<<53 - 3, 1753647547040015001, math.MaxInt64 - 1000} {
		t.Run(strconv.FormatInt(from, 10), func(t *testing.T) {
			b := newBench(t, 1)
			b.api.CountFrom(from)
			first := b.works("p0", nil)
			before := b.shows("p0")
			if before.Token <= from {
				t.Errorf("the token is %d, and the server counts from %d", before.Token, from)
			}
			first.kill()
			resumed := b.works("p0", nil)
			noted := func() int64 {
				r, _ := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
				return r.Token
			}
			b.await("the receipt has a token", func() bool { return noted() > 0 })
			if now := b.shows("p0"); noted() != now.Token || now.Token < before.Token {
				t.Errorf("the receipt notes %d, the program sees %d, and saw %d", noted(), now.Token, before.Token)
			}
			resumed.release()
			b.works("p1", nil)
			if after := b.shows("p1"); after.Token <= before.Token {
				t.Errorf("the next holder has %d after %d", after.Token, before.Token)
			}
		})
	}
}

// odd has a server give versions that are no decimal numbers.
type odd struct{ http.RoundTripper }

var version = regexp.MustCompile(`"resourceVersion":"([0-9]+)"`)

func (o odd) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodPatch {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	body = version.ReplaceAll(body, []byte(`"resourceVersion":"0x$1"`))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, err
}

// A claim that waits because of that says so, and the pod's program is not told an id.
func TestAVersionThatIsNoTokenIsNoSilence(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	config := b.api.Config()
	config.Wrap(func(t http.RoundTripper) http.RoundTripper { return odd{t} })
	s, err := store.New(config, b.clk)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan string, 1)
	b.start("p0", func(o *allocator.Options) {
		said(waits)(o)
		o.Store = s
	})
	for what := range waits {
		if strings.Contains(what, receipt.ErrNoToken.Error()) && strings.Contains(what, `"0x`) {
			break
		}
	}
	if now := b.shows("p0"); now.Assigned() {
		t.Errorf("the program is told %v", now)
	}
}
