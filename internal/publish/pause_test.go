package publish

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// postTo posts to a server whose pause is this function.
func postTo(t *testing.T, pause PauseFunc, target, peer string) answer {
	t.Helper()
	s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
	s.OnPause(pause)
	s.TrustLoopback()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
	r.RemoteAddr = peer
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestAPauseBeginsAndEnds(t *testing.T) {
	var got []bool
	pause := func(paused bool) error { got = append(got, paused); return nil }
	postTo(t, pause, "/v1/pause", self).want(t, 204, "")
	postTo(t, pause, "/v1/resume", self).want(t, 204, "")
	if !slices.Equal(got, []bool{true, false}) {
		t.Errorf("paused: %v", got)
	}
	for _, target := range []string{"/v1/pause", "/v1/resume"} {
		postTo(t, pause, target, "10.0.0.7:5").want(t, 403, "only a container of this pod")
		postTo(t, nil, target, self).want(t, 409, "--partitions and a drain hook")
	}
	if len(got) != 2 {
		t.Errorf("somebody else paused it: %v", got)
	}
	postTo(t, func(bool) error { return fs.ErrPermission }, "/v1/pause", self).want(t, 500, "permission denied")
}

func TestAPauseNeedsTheSecretWhereOthersShareTheLoopback(t *testing.T) {
	s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
	s.OnPause(func(bool) error { t.Error("it was paused"); return nil })
	s.RequireSecret("right")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/pause", http.NoBody)
	r.RemoteAddr = self
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("answered %d", w.Code)
	}
}

// Before that, others on the node might have sent the request.
func TestAPauseIsRefusedUntilItIsKnownWhoMayPost(t *testing.T) {
	paused := 0
	s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
	s.OnPause(func(bool) error { paused++; return nil })
	post := func() int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/pause", http.NoBody)
		r.RemoteAddr = self
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if code := post(); code != http.StatusServiceUnavailable || paused != 0 {
		t.Errorf("answered %d, paused %d times", code, paused)
	}
	s.TrustLoopback()
	if code := post(); code != http.StatusNoContent || paused != 1 {
		t.Errorf("answered %d, paused %d times", code, paused)
	}
}
