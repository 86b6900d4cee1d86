package serve

import (
	"errors"
	"io/fs"
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

// posted calls the handler of a server without a connection, so that a test can choose any peer address. It sends the secret, unless header has another.
func posted(t *testing.T, set func(*Server), target, peer string, header ...string) answer {
	t.Helper()
	s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
	s.RequireSecret(secret)
	set(s)
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

// post posts to a server that takes the program's word by this function.
func post(t *testing.T, drained DrainedFunc, target, peer string, header ...string) answer {
	t.Helper()
	return posted(t, func(s *Server) { s.OnDrained(drained) }, target, peer, header...)
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
	s.do(t, "GET", "/v1/identity", etag).want(t, 200, `"state":"fenced","id":null,"count":5,"token":0,"tokenText":"0"`)
	s.do(t, "GET", "/readyz", "").want(t, 503, "the state is fenced")
	s.hub.Set(without(identity.StatePending, 5))
	s.do(t, "GET", "/v1/identity", etag).want(t, 200, `"state":"pending"`)
}

func TestAPauseBeginsAndEnds(t *testing.T) {
	var got []bool
	pauses := func(s *Server) { s.OnPause(func(paused bool) error { got = append(got, paused); return nil }) }
	posted(t, pauses, "/v1/pause", self).want(t, 204, "")
	posted(t, pauses, "/v1/resume", self).want(t, 204, "")
	if !slices.Equal(got, []bool{true, false}) {
		t.Errorf("paused: %v", got)
	}
	for _, target := range []string{"/v1/pause", "/v1/resume"} {
		posted(t, pauses, target, "10.0.0.7:5").want(t, 403, "only a container of this pod")
		posted(t, func(s *Server) { s.OnPause(nil) }, target, self).want(t, 409, "--partitions and a drain hook")
	}
	if len(got) != 2 {
		t.Errorf("it was paused by another request: %v", got)
	}
	fails := func(s *Server) { s.OnPause(func(bool) error { return fs.ErrPermission }) }
	posted(t, fails, "/v1/pause", self).want(t, 500, "permission denied")
}

func TestEachPOSTNeedsTheSecret(t *testing.T) {
	for _, wrong := range []string{"", "wrong", "righ", "rightt"} {
		for _, required := range []string{secret, ""} { // it was not said which it is
			takes := func(s *Server) {
				s.OnDrained(func(Report) error { t.Error("a word was taken"); return nil })
				s.OnPause(func(bool) error { t.Error("it was paused"); return nil })
				s.RequireSecret(required)
			}
			for _, path := range []string{"/v1/drained", "/v1/pause", "/v1/resume"} {
				posted(t, takes, path, self, SecretHeader, wrong).
					want(t, 403, "send the content of the file drain-secret of --dir in the header Idalloc-Drain-Secret")
			}
		}
	}
}
