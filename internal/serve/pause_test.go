package serve

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
	s.RequireSecret(secret)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
	r.RemoteAddr = peer
	r.Header.Set(SecretHeader, secret)
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
		t.Errorf("it was paused by another request: %v", got)
	}
	postTo(t, func(bool) error { return fs.ErrPermission }, "/v1/pause", self).want(t, 500, "permission denied")
}
