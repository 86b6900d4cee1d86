package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	self   = "127.0.0.1:5" // a peer of the same pod
	secret = "right"       // what it proves that by
)

// post calls the handler without a connection, so that a test can choose any peer address. It sends the secret.
func post(t *testing.T, drained DrainedFunc, target, peer string, header ...string) answer {
	t.Helper()
	s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
	s.OnDrained(drained)
	s.RequireSecret(secret)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
	r.RemoteAddr = peer
	r.Header.Set(SecretHeader, secret)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestDrainedTakesTheProgramsWord(t *testing.T) {
	var got []Report
	take := func(said Report) error {
		got = append(got, said)
		return nil
	}
	for _, peer := range []string{self, "[::1]:5", "[::ffff:127.0.0.1]:5"} {
		post(t, take, "/v1/drained", peer).want(t, 204, "")
	}
	post(t, take, "/v1/drained?token=1795219200123&stop=2", self).want(t, 204, "")
	post(t, take, "/v1/drained?partitions=12-15,40&stop=3", self).want(t, 204, "")
	if len(got) != 5 || got[0].Token != 0 || got[0].Stop != 0 || !got[0].Partitions.Empty() || got[3].Token != 1795219200123 || got[3].Stop != 2 {
		t.Fatalf("the reports are %+v", got)
	}
	if part := got[4]; part.Stop != 3 || part.Partitions.String() != "12-15,40" || !got[3].Partitions.Empty() {
		t.Errorf("the report about some partitions is %+v", part)
	}
}

func TestDrainedRefuses(t *testing.T) {
	refuse := func(Report) error { return errors.New("nothing to drain: the id is in use") }
	never := func(Report) error {
		t.Error("a word was taken that should be refused")
		return nil
	}
	for name, c := range map[string]struct {
		drained      DrainedFunc
		target, peer string
		header       []string
		code         int
		says         string
	}{
		"when there is nothing to drain":    {refuse, "", self, nil, 409, "the id is in use"},
		"when nothing is awaited":           {nil, "", self, nil, 409, "--drain=http"},
		"another pod":                       {never, "", "10.0.0.7:5", nil, 403, "only a container of this pod"},
		"a proxy that knows the secret":     {never, "", self, []string{"Via", "x"}, 403, "the header Via says that a proxy passed the request on"},
		"another site's page in a browser":  {never, "", self, []string{"Origin", "https://example.com"}, 403, "Origin"},
		"a page of no origin":               {never, "", self, []string{"Origin", "null"}, 403, "Origin"},
		"a program that uses Node's fetch":  {refuse, "", self, []string{"Sec-Fetch-Mode", "cors"}, 409, "the id is in use"},
		"a browser that hides the origin":   {never, "", self, []string{"Sec-Fetch-Site", "cross-site"}, 403, "Sec-Fetch-Site"},
		"a token that is none":              {never, "?token=soon", self, nil, 400, "is not a token"},
		"the token that goes with no id":    {never, "?token=0", self, nil, 400, "is not a token"},
		"a stop that is none":               {never, "?stop=0", self, nil, 400, "is not the number of a stop"},
		"a stop that is no number":          {never, "?partitions=1&stop=last", self, nil, 400, "is not the number of a stop"},
		"partitions without the stop":       {never, "?partitions=12-15", self, nil, 400, "partitions=12-15&stop=3"},
		"no partitions of a stop":           {never, "?partitions=&stop=3", self, nil, 400, "no set of partitions"},
		"partitions that cannot be read":    {never, "?partitions=15-12&stop=3", self, nil, 400, "no set of partitions"},
		"a token of another pod's, from it": {never, "?token=1", "10.0.0.7:5", nil, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			post(t, c.drained, "/v1/drained"+c.target, c.peer, c.header...).want(t, c.code, c.says)
		})
	}
}

func TestDrainedIsForPOSTOnly(t *testing.T) {
	s := start(t, without(identity.StateDraining, 5), nil)
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if a := s.do(t, method, "/v1/drained", ""); a.code != 405 || a.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, a.code, a.header.Get("Allow"))
		}
	}
	s.do(t, "POST", "/v1/drained", "").want(t, 409, "does not wait")
}

func TestABodyIsRefusedAndNotWaitedFor(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	body := strings.NewReader(`{"token":7}`)
	for _, path := range []string{"/v1/drained", "/v1/identity"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 1 << 40 // more is promised than comes
		r.Header.Set("Expect", "100-continue")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("%s: %d, closes %t", path, resp.StatusCode, resp.Close)
		}
	}
}

func TestAFencedIDIsNotAnsweredWhateverWasSet(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	over := false
	s.hub.CheckFenced(func() bool { return over })
	etag := s.do(t, "GET", "/v1/identity", "").header.Get("ETag")
	s.do(t, "GET", "/readyz", "").want(t, 200, "3/5")
	s.hub.mu.Lock()
	over = true
	s.hub.mu.Unlock()
	s.do(t, "GET", "/v1/identity", etag).want(t, 200, `"state":"fenced","id":null,"count":5,"token":0`)
	s.do(t, "GET", "/readyz", "").want(t, 503, "the state is fenced")
	s.hub.Set(without(identity.StatePending, 5))
	s.do(t, "GET", "/v1/identity", etag).want(t, 200, `"state":"pending"`)
}
