package sanitise

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Line makes one line of a foreign text, of at most this many bytes.
func Line(text string, most int) string { return shorten(strings.Map(printable, text), most) }

// Quoted prepares a foreign text for log lines, Events and errors: at most 256 bytes, and quoted unless it is a plain word.
func Quoted(text string) string {
	const most = 256
	short := strings.ToValidUTF8(text[:min(len(text), most/4)], "") // quoting may need up to four bytes for one
	switch {
	case len(text) > most:
		return fmt.Sprintf("%q and %d bytes more", short, len(text)-len(short))
	case strings.Map(printable, text) != text || strings.ContainsAny(text, " \""):
		return shorten(strconv.Quote(text), most)
	}
	return text
}

// printable replaces characters that control a terminal.
func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}

// shorten cuts text to at most this many bytes.
func shorten(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(dots)], "") + dots
}
