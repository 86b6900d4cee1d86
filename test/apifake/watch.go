package apifake

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change is one of an object: was is nil if there was none before, is is nil if there is none any more.
type change struct {
	version int
	at      string // the object's path
	was, is *unstructured.Unstructured
}

// changed notes a change, and wakes the watches.
func (s *Server) changed(at string, was, is *unstructured.Unstructured) {
	s.changes = append(s.changes, change{version: s.version, at: at, was: was, is: is})
	close(s.news)
	s.news = make(chan struct{})
}

func isWatch(r *http.Request) bool {
	asked, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && asked
}

// watch sends the changes after the version that the request names, as they come, until the client or the test ends. It knows no
// streaming lists and no bookmarks.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	fits, bad := selected(r)
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		Refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: this server has no streaming lists", nil)
		return
	case err != nil || bad != nil:
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "a resourceVersion and selectors are needed", nil)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for sent := 0; ; {
		s.mu.Lock()
		changes, news := s.changes[sent:], s.news
		s.mu.Unlock()
		for _, c := range changes {
			if c.version <= from || path.Dir(c.at) != r.URL.Path {
				continue
			}
			if kind, o := seen(c, fits); kind != "" {
				if err := json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": seenBy(r, o)}); err != nil {
					return
				}
			}
		}
		sent += len(changes)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

// seen is a change as a watch with selectors shows it; kind is empty if it does not.
func seen(c change, fits func(*unstructured.Unstructured) bool) (kind string, o *unstructured.Unstructured) {
	before, after := c.was != nil && fits(c.was), c.is != nil && fits(c.is)
	switch {
	case after && !before:
		return "ADDED", c.is
	case after:
		return "MODIFIED", c.is
	case before:
		gone := c.was.DeepCopy()
		gone.SetResourceVersion(strconv.Itoa(c.version))
		return "DELETED", gone
	}
	return "", nil
}

// Await returns when what is asked for has come, which is looked at after each change. It returns false if ctx ends before.
func (s *Server) Await(ctx context.Context, is func() bool) bool {
	for {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if is() {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}
