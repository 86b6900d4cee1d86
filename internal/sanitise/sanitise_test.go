package sanitise_test

import (
	"io"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/sanitise"
)

func TestWhatIsShownHasNoEffect(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc, é, 😀\n":                    "a\tb\nc, é, 😀\n",
		"\x1b[2J\x1b]0;title\a":              "␛[2J␛]0;title␇",
		"bad\rok":                            "bad␍ok",
		"a\b\x7f":                            "a␈␡",
		"\u009b2J":                           "�2J",
		"\x9b2J, and \xff":                   "�2J, and �",
		"a\u202eb\u2066":                     "a�b�",
		strings.Repeat("x", 10_000) + "\x1b": strings.Repeat("x", 10_000) + "␛",
	} {
		for _, step := range []int{len(text), 1} {
			var b strings.Builder
			w := sanitise.Writer(&b)
			for k := 0; k < len(text); k += step {
				if n, err := io.WriteString(w, text[k:k+step]); n != step || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
			if b.String() != want {
				t.Errorf("%q is shown as %q, want %q", text, b.String(), want)
			}
		}
	}
}
