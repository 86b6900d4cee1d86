package loopback_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/idalloc/idalloc/internal/loopback"
)

func TestIsLooksAtTheAddress(t *testing.T) {
	for from, want := range map[string]bool{
		"127.0.0.1:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true,
		"127.0.0.6:5": false, "10.0.0.7:5": false, "[fd00::7]:5": false, "@": false, "": false,
	} {
		if got := loopback.Is(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s: %t, want %t", from, got, want)
		}
	}
}

func TestAProxyShowsByItsHeader(t *testing.T) {
	for header, want := range map[string]bool{
		"Via": true, "Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Proto": true, "X-Real-Ip": true, "X-Client-Ip": true, "X-Original-Host": true,
		"X-Envoy-Internal": true, "L5d-Client-Id": true, "True-Client-Ip": true, "X-Cluster-Client-Ip": true,
		"X-Request-Id": false, "Origin": false, "Sec-Fetch-Mode": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", "x")
		r.Header.Set(header, "x")
		if got := loopback.Forwarded(r); (got == header) != want || (got != "") != want {
			t.Errorf("%s: %q, want %t", header, got, want)
		}
	}
}
