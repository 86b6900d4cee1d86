package serve

import "net/http"

// Bounded returns a server for short answers with the limits of a Server: few connections, and no client holds one for long.
func Bounded(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadTimeout: readHeaderTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ConnState: newConnections().track,
	}
}
