package publish

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
)

// postDrained answers POST /v1/drained. It answers 204 if somebody waits for the program's report, and 409 with the reason
// otherwise.
func (h *handler) postDrained(w http.ResponseWriter, r *http.Request) {
	if reason := cmp.Or(foreign(r), h.unproven(r)); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	epoch, err := parseEpoch(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if h.drained == nil {
		http.Error(w, "nothing to drain: nobody waits for the program here; idalloc watch does with --drain=http", http.StatusConflict)
		return
	}
	if err := h.drained(epoch); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// foreign returns why a request does not come from a container of this pod. It returns an empty reason if the request does.
//
// The containers of a pod share its loopback interface. Nobody else uses it, except with hostNetwork, for which there is a
// secret. But two programs in the pod may pass on requests of others: the proxy of a service mesh, which adds a header, and a
// port-forward with a browser at its other end. Browsers send Origin with every POST, even to a name that was rebound to this
// address, so there is no need to check the Host header.
func foreign(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return "only a container of this pod may say this: post to 127.0.0.1 or [::1], not to the pod's address"
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header.Get(name) != "" {
			return "only a container of this pod may say this: the header " + name + " says that a proxy passed the request on"
		}
	}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if r.Header.Get(name) != "" {
			return "only the program may say this: the header " + name + " says that the request comes from a browser"
		}
	}
	return ""
}

// parseEpoch returns the epoch that the request names, or 0 if it names none.
func parseEpoch(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("epoch")
	if text == "" {
		return 0, nil
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch <= 0 {
		return 0, fmt.Errorf("epoch=%q is not an epoch: give the one that came with the id, or none", text)
	}
	return epoch, nil
}
