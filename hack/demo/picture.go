package main

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Sizes of the picture, in pixels. A character of a monospaced font is about 0.6 of its size wide.
const (
	fontSize   = 13
	charWidth  = 7.8
	lineHeight = 18
	margin     = 20
	titleBar   = 30
)

// picture returns an SVG of a terminal with what is worth seeing of the demo's output. The same text gives the same picture.
func picture(output string) string {
	lines := excerpt(output)
	width := 0
	for _, line := range lines {
		width = max(width, len([]rune(line)))
	}
	w, h := int(float64(width)*charWidth)+2*margin, titleBar+len(lines)*lineHeight+margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="Output of make demo">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`+"\n", w, h)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin+i*lineHeight, titleBar/2, colour)
	}
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="%d" fill="#c9d1d9">`+"\n", fontSize)
	for i, line := range lines {
		if line == "" {
			continue
		}
		// xml:space stands on each text: browsers do not inherit it from the group.
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(line)) // a Builder takes everything
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s xml:space="preserve">%s</text>`+"\n", margin, titleBar+(i+1)*lineHeight-fontSize/3, look(line), text.String())
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// excerpt returns the lines for the picture: the command, the start, the loss of two pods, and the proof.
func excerpt(output string) []string {
	lines := []string{"$ make demo", ""}
	shown := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "1/4 "), strings.HasPrefix(line, "3/4 "), strings.HasPrefix(line, tick) && strings.Contains(line, "samples"):
			shown = true
		case line == "":
			if shown {
				lines = append(lines, "")
			}
			shown = false
		}
		if shown {
			lines = append(lines, line)
		}
	}
	return slices.Clip(lines)
}

// look returns the attributes of a line.
func look(line string) string {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(trimmed, "$ "):
		return ` fill="#79c0ff"`
	case strings.HasPrefix(trimmed, tick):
		return ` fill="#56d364"`
	case len(line) > 1 && line[1] == '/':
		return ` fill="#ffffff" font-weight="bold"`
	case strings.Contains(line, "s  id ") && !strings.Contains(line, "  held  "):
		return ` fill="#e3b341"`
	}
	return ""
}
