// Package sanitise shows text of others on a terminal without the effects that it may have there: what a container or an Event says, or an
// annotation.
package sanitise

import (
	"io"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Writer returns a writer that shows control characters, except for tabs and line ends, and so escape sequences. It also shows what turns the
// direction of text around. An incomplete character at the end of a Write waits for the next one.
func Writer(w io.Writer) io.Writer { return transform.NewWriter(w, runes.Map(shown)) }

// shown returns the character that stands for r.
func shown(r rune) rune {
	const pictures, deletePicture = '␀', '␡'
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return pictures + r
	case r == 0x7f:
		return deletePicture
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}
