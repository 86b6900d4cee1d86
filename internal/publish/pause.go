package publish

import (
	"cmp"
	"net/http"
)

// PauseFunc begins a pause of the pod's work on partitions, or ends it. It must not block. After an error nothing has changed.
type PauseFunc func(paused bool) error

// OnPause sets the function that receives POST /v1/pause and POST /v1/resume. Without one, the server answers 409. With one, it answers
// 503 until RequireSecret or TrustLoopback says who may post. Call it before Run.
func (s *Server) OnPause(pause PauseFunc) { s.handler.pause = pause }

// TrustLoopback says that nobody but the containers of this pod shares its loopback interface, so that a POST needs no secret. It may be
// called while the server runs.
func (s *Server) TrustLoopback() { s.handler.trusted.Store(true) }

// postPause answers POST /v1/pause and POST /v1/resume. It answers 204 if the pod works on partitions that can be stopped, and 409 otherwise.
// Until it is known whether the pod has its node's network it answers 503: others on the node could have sent the request.
func (h *handler) postPause(paused bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if reason := cmp.Or(foreign(r), h.unproven(r)); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		if h.pause == nil {
			http.Error(w, "nothing to pause: no work on partitions can be stopped here; it can with idalloc watch --partitions and a drain hook", http.StatusConflict)
			return
		}
		if h.secret.Load() == nil && !h.trusted.Load() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "not known yet whether this pod shares its node's network: ask again in a second", http.StatusServiceUnavailable)
			return
		}
		if err := h.pause(paused); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
