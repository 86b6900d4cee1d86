// Package cases runs cases that stand as text in files.
package cases

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Run runs each file testdata/*.txt of the package as a test of its own. begin is called for each file and returns what answers its cases, one after
// the other. With -rewrite the answers replace what the files say.
func Run(t *testing.T, begin func(t *testing.T) func(*testing.T, *datadriven.TestData) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { datadriven.RunTest(t, file, begin(t)) })
	}
}
