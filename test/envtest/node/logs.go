package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"k8s.io/apimachinery/pkg/util/validation"
)

// serveLogs answers what the API server asks a kubelet for on behalf of "kubectl logs": all of a container's log so far.
func (n *Node) serveLogs() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		for _, part := range []string{"namespace", "pod", "container"} {
			if len(validation.IsDNS1123Subdomain(r.PathValue(part))) > 0 {
				http.NotFound(w, r)
				return
			}
		}
		log, err := os.Open(n.Logs(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer func() { _ = log.Close() }()
		_, _ = io.Copy(w, log)
	})
	n.logs = httptest.NewTLSServer(mux) // the API server does not look at a kubelet's certificate unless it is told to
}
