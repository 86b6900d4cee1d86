package page

import (
	"context"
	"io"
	"math"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	// Size is the number of objects in a page of a list. client-go's own lists use the same number.
	Size = 500
	// Bytes is the largest size of a page. An object's metadata takes kilobytes, but its annotations alone may take 256 KiB.
	Bytes = 8 << 20
	// fewer divides the number of objects in a page after a page was too large.
	fewer = 4
)

// Each reads pages of at most limit objects, 0 for all in one page, until there is no continue token. It stops reading a page that is too large, and
// starts over with fewer objects per page. If tokens expire twice, it reads all in one page of any size. If o.Continue is empty, read gets the first page,
// perhaps again. turns bounds by its capacity how many pages are in memory at a time; nil means no bound.
//
// It falls back to a consistent read if the server's cache does not become as new as o demands. Before Kubernetes 1.31, the cache of pods stays old while
// no pod changes, even if other objects do. A server that was restored from a backup does not get there either.
func Each(
	ctx context.Context, turns chan struct{}, of request.Target, o metav1.ListOptions, limit int64,
	read func(context.Context, metav1.ListOptions) (next string, err error),
) error {
	o.Limit, o.Continue = limit, ""
	most, expired := int64(Bytes), false
	for {
		part := &part{left: most}
		if o.Limit == 1 {
			part.left = math.MaxInt64 // it cannot become smaller
		}
		if o.Limit > 0 { // the server's cache has no pages
			o.ResourceVersion, o.ResourceVersionMatch = "", ""
		}
		next, err := inTurn(ctx, turns, func() (string, error) {
			return request.Send(context.WithValue(ctx, partKey{}, part), of, "list", func(ctx context.Context) (string, error) { return read(ctx, o) })
		})
		switch {
		case o.ResourceVersionMatch != "" && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
			o.ResourceVersion, o.ResourceVersionMatch = "", ""
		case part.left < 0: // a token is only valid for its limit
			if o.Limit, o.Continue = o.Limit/fewer, ""; o.Limit == 0 {
				o.Limit = Size
			}
		case apierrors.IsResourceExpired(err) && o.Continue != "":
			if o.Limit, o.Continue = 0, ""; expired {
				most = math.MaxInt64 // pages would expire again and again
			}
			expired = true
		case err != nil:
			return err
		case next == "":
			return nil
		default:
			o.Continue = next
		}
	}
}

// inTurn reads a page when there is room in turns.
func inTurn(ctx context.Context, turns chan struct{}, read func() (string, error)) (string, error) {
	if turns != nil {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return read()
}

// part counts how many bytes of a page may still be read. It is negative when the page was too large.
type part struct{ left int64 }

// partKey is the context key of a request's part.
type partKey struct{}

// Transport cuts off pages that are too large. No decoder accepts such an answer, because its outermost message or brace is incomplete.
//
// It also removes Retry-After from the answers to writes. Otherwise client-go would repeat the write by itself, although the first copy may still arrive,
// and no caller would know about that one. It also removes it from the answer that a cache is not new enough, because the cache may never be.
type Transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if part, is := r.Context().Value(partKey{}).(*part); is {
		answer.Body = &body{answer.Body, part}
	}
	if r.Method != http.MethodGet || answer.StatusCode == http.StatusGatewayTimeout && r.URL.Query().Has("resourceVersionMatch") {
		answer.Header.Del("Retry-After")
	}
	return answer, nil
}

type body struct {
	io.ReadCloser
	*part
}

// Read implements io.Reader. A page that is too large just ends, because client-go would log any other error.
func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if b.left -= int64(n); b.left < 0 {
		return 0, io.EOF
	}
	return n, err
}
