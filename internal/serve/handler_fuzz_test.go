package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// exchange is one request of the fuzzer and the handlers' answer.
type exchange struct {
	request *http.Request
	answer  *httptest.ResponseRecorder
	drained []int64
	fenced  bool
	now     identity.Identity
}

// The handlers answer every request that Go's server can read. They do not panic, they answer no server error other than 503,
// and they show an id only if it is held. mode chooses the state of the instance, and whether a report is awaited.
func FuzzHandlers(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte, peer string, mode uint8) {
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		request.RemoteAddr = peer
		x := &exchange{request: request, answer: httptest.NewRecorder()}
		x.serve(t, mode)
		code := x.answer.Code
		if code >= http.StatusInternalServerError && code != http.StatusServiceUnavailable {
			t.Fatalf("%s %s is answered with %d: %s", request.Method, request.URL, code, x.answer.Body)
		}
		x.checkID(t)
		x.checkDrained(t)
		if request.URL.Path == "/readyz" && code == http.StatusOK && !x.held() {
			t.Fatalf("%+v is ready", x.now)
		}
	})
}

func (x *exchange) held() bool { return x.now.Assigned() && !x.fenced }

func (x *exchange) serve(t *testing.T, mode uint8) {
	t.Helper()
	states := []identity.State{
		identity.StateAssigned, identity.StatePending, identity.StateDraining, identity.StateReleased, identity.StateLost, identity.StateFenced,
	}
	x.now = without(states[int(mode)%len(states)], 5)
	if x.now.Assigned() {
		x.now = assigned(3, 5, 7)
	}
	x.fenced = mode&0x40 != 0
	hub := NewHub(x.now)
	hub.CheckFenced(func() bool { return x.fenced })
	hub.SetStale(mode&0x80 != 0)
	server := NewServer("", hub, nil)
	close(server.closing) // or a long poll would last
	server.RequireSecret(secret)
	if mode&0x20 != 0 {
		server.OnDrained(func(said Report) error {
			x.drained = append(x.drained, said.Token)
			if mode&0x10 != 0 {
				return errors.New("the id was not asked for")
			}
			return nil
		})
	}
	server.Handler().ServeHTTP(x.answer, x.request)
}

// checkID checks that an answer with an identity shows an id if and only if one is held, and that no other answer shows one.
func (x *exchange) checkID(t *testing.T) {
	t.Helper()
	body := x.answer.Body.String()
	if x.answer.Header().Get("Content-Type") != "application/json" {
		if strings.Contains(body, `"id"`) && !strings.Contains(x.request.URL.String(), "id") {
			t.Fatalf("%s shows an id: %s", x.request.URL, body)
		}
		return
	}
	var shown struct {
		ID *int `json:"id"`
	}
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatalf("%s is answered with %q: %v", x.request.URL, body, err)
	}
	if (shown.ID != nil) != x.held() || shown.ID != nil && *shown.ID != x.now.ID {
		t.Fatalf("%+v (fenced: %v) is shown as %s", x.now, x.fenced, body)
	}
}

// checkDrained checks that a report counts only if it comes from a container of the pod, and once for each request.
func (x *exchange) checkDrained(t *testing.T) {
	t.Helper()
	if len(x.drained) == 0 {
		return
	}
	peer, err := netip.ParseAddrPort(x.request.RemoteAddr)
	local := err == nil && slices.Contains([]string{"127.0.0.1", "::1"}, peer.Addr().Unmap().String())
	if len(x.drained) > 1 || x.drained[0] < 0 || !local || x.request.Method != http.MethodPost || x.request.URL.Path != "/v1/drained" {
		t.Fatalf("%s %s from %q counts as the program's word: %v", x.request.Method, x.request.URL, x.request.RemoteAddr, x.drained)
	}
	if x.request.Header.Get(SecretHeader) != secret {
		t.Fatal("a request without the secret counts as the program's word")
	}
	for _, sign := range []string{"Origin", "Forwarded", "X-Forwarded-For", "X-Envoy-Internal", "Via"} {
		if x.request.Header.Get(sign) != "" {
			t.Fatalf("a request with %s counts as the program's word", sign)
		}
	}
}
