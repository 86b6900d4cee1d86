package serve

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/idalloc/idalloc/internal/loopback"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Report is the program's report that it has stopped.
type Report struct {
	// Token is the id's token. 0 stands for any token.
	Token int64
	// Stop is the number of the stop that the report answers, or 0.
	Stop int
	// Partitions are the partitions on which the program has stopped. If the set is empty, it has stopped using the id.
	Partitions placement.Set
}

// postDrained answers POST /v1/drained: 204 if a stop waits for the program's report, otherwise 409 with the reason.
func (h *handler) postDrained(w http.ResponseWriter, r *http.Request) {
	if h.drained == nil {
		http.Error(w, "nothing to drain: idalloc does not wait for the program here; idalloc watch does with --drain=http", http.StatusConflict)
		return
	}
	if reason := h.foreign(r); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	report, err := parseReport(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := h.drained(report); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// foreign explains why a request does not come from a container of this pod. The reason is empty if the request does.
//
// The secret is the proof. The other checks are for a program in the pod that knows the secret and forwards requests of others: a proxy, or a port-forward with
// a browser at its other end. Browsers send Origin with every POST, even to a name that was rebound to this address, so the Host header needs no check.
func (h *handler) foreign(r *http.Request) string {
	if !loopback.Is(r) {
		return "only a container of this pod may say this: post to 127.0.0.1 or [::1], not to the pod's address"
	}
	if name := loopback.Forwarded(r); name != "" {
		return "only a container of this pod may say this: the header " + name + " says that a proxy passed the request on"
	}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} { // not every Sec- header: Node's fetch sends Sec-Fetch-Mode
		if len(r.Header[name]) > 0 {
			return "only the program may say this: the header " + name + " says that the request comes from a browser"
		}
	}
	if !h.proven(r) {
		return "only a container of this pod may say this: send the content of the file " + publish.SecretName + " of --dir in the header " + SecretHeader
	}
	return ""
}

// parseReport reads the report from a request's query.
func parseReport(query url.Values) (Report, error) {
	var r Report
	if text := query.Get("token"); text != "" {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil || token <= 0 {
			return r, fmt.Errorf("token=%q is not a token: give the one that came with the id, or none", text)
		}
		r.Token = token
	}
	if text := query.Get("stop"); text != "" {
		stop, err := strconv.Atoi(text)
		if err != nil || stop <= 0 {
			return r, fmt.Errorf("stop=%q is not the number of a stop: give the one that identity.json had", text)
		}
		r.Stop = stop
	}
	if !query.Has("partitions") {
		return r, nil
	}
	text := query.Get("partitions")
	set, err := placement.Parse(text, math.MaxInt32)
	switch {
	case err != nil || set.Empty():
		return r, fmt.Errorf("partitions=%q is no set of partitions: give what identity.json says is stopping, such as 12-15,40", text)
	case r.Stop == 0:
		return r, errors.New("partitions without stop: give the number of the stop, too, as identity.json had it, such as partitions=12-15&stop=3")
	}
	r.Partitions = set
	return r, nil
}
