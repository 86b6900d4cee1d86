package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestTheServersNumbersAreLookedAt(t *testing.T) {
	for version, want := range map[string]struct {
		state State
		says  string
	}{
		"1000": {InForce, "at 1000"}, "1753647547040015001": {InForce, "read tokenText"}, "9223372036854775808": {Broken, `"9223372036854775808"`}, "0x3e8": {Broken, "decimal"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, version)
		}))
		client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		c := checker{Options{Dynamic: client, Namespace: "shop"}}
		row, err := c.numbers(t.Context())
		if err != nil || row.State != want.state || !strings.Contains(row.Detail, want.says) {
			t.Errorf("%s: %+v, %v", version, row, err)
		}
		server.Close()
	}
}
