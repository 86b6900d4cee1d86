// Package sanitise makes foreign text safe for a terminal: output of a container, an Event or an annotation.
package sanitise

import (
	"io"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Writer returns a writer that makes control characters visible, except tabs and line ends, and with them escape sequences. It also makes characters visible
// that change the direction of text. An incomplete character at the end of a Write waits for the next one.
func Writer(w io.Writer) io.Writer { return transform.NewWriter(w, runes.Map(shown)) }

// shown returns the character to print for r.
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
