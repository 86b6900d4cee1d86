package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

func TestEachPOSTNeedsTheSecret(t *testing.T) {
	for _, wrong := range []string{"", "wrong", "righ", "rightt"} {
		for _, required := range []string{secret, ""} { // it was not said which it is
			s := NewServer(":0", NewHub(without(identity.StateDraining, 5)), nil)
			s.OnDrained(func(Report) error { t.Error("a word was taken"); return nil })
			s.OnPause(func(bool) error { t.Error("it was paused"); return nil })
			s.RequireSecret(required)
			for _, path := range []string{"/v1/drained", "/v1/pause", "/v1/resume"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
				r.RemoteAddr = self
				r.Header.Set(SecretHeader, wrong)
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, r)
				answer{w.Code, w.Header(), w.Body.String()}.want(t, 403, "send the content of the file drain-secret of --dir in the header Idalloc-Drain-Secret")
			}
		}
	}
}
