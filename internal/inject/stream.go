package inject

import (
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one document of a stream: its text, and the separator line before it.
type document struct{ separator, body string }

// split cuts a stream at lines that begin with "---" or "...". YAML has them nowhere else, not even in multi-line strings.
func split(stream string) []document {
	documents := []document{{}}
	for line := range strings.Lines(stream) {
		d := &documents[len(documents)-1]
		marker, rest := line, ""
		if len(line) > 3 {
			marker, rest = line[:3], line[3:]
		}
		blank := strings.TrimSpace(rest) == "" || strings.HasPrefix(strings.TrimLeft(rest, " \t"), "#")
		switch {
		case marker != "---" && marker != "..." || rest != "" && !strings.ContainsRune(" \t\r\n", rune(rest[0])):
			d.body += line
		case blank:
			documents = append(documents, document{separator: line})
		default: // the document begins on its separator's line
			documents = append(documents, document{separator: marker, body: rest})
		}
	}
	return documents
}

var (
	word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_-]*$`)
	// truth matches what is a boolean to kubectl, by the rules of YAML 1.1, but a string to the YAML library.
	truth = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$`)
)

// style is how a document is formatted.
type style struct {
	indent  int
	compact bool // sequences are not indented
}

// styleOf detects the style of a document from its first mapping and its first sequence.
func styleOf(root *yaml.Node) style {
	s := style{}
	compact := 0
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && c.Line > n.Content[i-1].Line && c.Style&yaml.FlowStyle == 0 {
				switch step := c.Column - n.Content[i-1].Column; {
				case c.Kind == yaml.MappingNode && s.indent == 0:
					s.indent = step
				case c.Kind == yaml.SequenceNode && compact == 0:
					compact = step + 1
				}
			}
			visit(c)
		}
	}
	visit(root)
	s.compact = compact == 1
	if s.indent < 2 || s.indent > 8 {
		s.indent = 2
	}
	return s
}

func (s style) encode(root *yaml.Node) (string, error) {
	if root.Content[0].Style&yaml.FlowStyle != 0 { // JSON: YAML's flow style does not keep to its rules
		block(root)
	}
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(s.indent)
	if s.compact {
		e.CompactSeqIndent()
	}
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

// block changes JSON style to block style. Strings that could be read as another type stay quoted.
func block(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode && word.MatchString(n.Value) && !truth.MatchString(n.Value) {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		block(c)
	}
}
