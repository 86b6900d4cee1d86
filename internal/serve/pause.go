package serve

import "net/http"

// PauseFunc pauses the pod's work on partitions, or resumes it. It must not block. After an error nothing has changed.
type PauseFunc func(paused bool) error

// OnPause sets the handler of POST /v1/pause and POST /v1/resume. Without one, the server answers 409. Call it before Run.
func (s *Server) OnPause(pause PauseFunc) { s.pause = pause }

// postPause answers POST /v1/pause and POST /v1/resume: 204 if the pod works on partitions that can be stopped, otherwise 409.
func (h *handler) postPause(paused bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.pause == nil {
			http.Error(w, "nothing to pause: no work on partitions can be stopped here; it can with idalloc watch --partitions and a drain hook", http.StatusConflict)
			return
		}
		if reason := h.foreign(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		if err := h.pause(paused); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
