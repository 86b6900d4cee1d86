package sanitise_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/idalloc/idalloc/internal/sanitise"
)

func TestALineIsShort(t *testing.T) {
	if got := sanitise.Line("short", 5); got != "short" {
		t.Errorf("%q", got)
	}
	got := sanitise.Line(strings.Repeat("ä", 600), 1024)
	if len(got) > 1024 || // what the API server takes
		!utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
}

// A name that others chose is a part of log lines and Events.
func TestWhatOthersWroteIsQuotedAndShort(t *testing.T) {
	for text, want := range map[string]string{
		"apps/v1": "apps/v1", "two words": `"two words"`, "\x1b[2J": `"\x1b[2J"`, `a"b`: `"a\"b"`,
		strings.Repeat("\x1b", 300): `"` + strings.Repeat(`\x1b`, 64) + `" and 236 bytes more`,
	} {
		if got := sanitise.Quoted(text); got != want {
			t.Errorf("%.20q is shown as %s, want %s", text, got, want)
		}
	}
}
