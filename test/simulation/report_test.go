package simulation

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// busySeed is a history with many faults.
const busySeed = 40080

func TestTheReportOfASeed(t *testing.T) {
	suite.warmUp(t)
	var chronicle Chronicle
	var r Result
	synctest.Test(t, func(*testing.T) { r = Play(busySeed, nil, nil, nil, &chronicle) })
	dir := filepath.Join(t.TempDir(), "run")
	if err := chronicle.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(filepath.Join(dir, "index.html")) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"seed":"40080"`, `"kind":"` + r.List[0].Name + `"`, `"id":0,"token":`} {
		if !bytes.Contains(html, []byte(part)) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if n := bytes.Count(html, []byte(`"until":`)); n != len(r.List) {
		t.Errorf("the page has %d of %d faults", n, len(r.List))
	}
}
