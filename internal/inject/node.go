package inject

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// field returns the value of a key of a mapping, or nil.
func field(m *yaml.Node, key string) *yaml.Node {
	if i := keyIndex(m, key); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

func keyIndex(m *yaml.Node, key string) int {
	if m == nil || m.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// descend follows keys, and returns nil where one is missing.
func descend(m *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		m = field(m, key)
	}
	return m
}

// value returns the text at the end of keys. It is empty if a key is missing or the value is null.
func value(m *yaml.Node, keys ...string) string {
	n := descend(m, keys...)
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// list returns the sequence at a key, or nil.
func list(m *yaml.Node, key string) *yaml.Node {
	if n := field(m, key); n != nil && n.Kind == yaml.SequenceNode {
		return n
	}
	return nil
}

// elements returns a copy of the elements of a sequence, so that the sequence may change during a loop.
func elements(sequence *yaml.Node) []*yaml.Node {
	if sequence == nil {
		return nil
	}
	return slices.Clone(sequence.Content)
}

// texts returns the strings in a sequence of scalars.
func texts(sequence *yaml.Node) []string {
	all := make([]string, 0, len(elements(sequence)))
	for _, n := range elements(sequence) {
		all = append(all, n.Value)
	}
	return all
}

// named returns the index of the first element of a sequence in which key has the value text, or -1.
func named(sequence *yaml.Node, key, text string) int {
	return slices.IndexFunc(elements(sequence), func(n *yaml.Node) bool { return value(n, key) == text })
}

// put sets a key of a mapping.
func put(m *yaml.Node, key string, v *yaml.Node) {
	if i := keyIndex(m, key); i >= 0 {
		m.Content[i+1] = v
		return
	}
	m.Content = append(m.Content, scalar(key), v)
}

// remove deletes a key of a mapping.
func remove(m *yaml.Node, key string) {
	if i := keyIndex(m, key); i >= 0 {
		m.Content = slices.Delete(m.Content, i, i+2)
	}
}

// drop deletes the element with this name from a list, and the list if it is then empty. It reports whether there was one.
func drop(parent *yaml.Node, key, name string) bool {
	l := list(parent, key)
	at := named(l, "name", name)
	if at < 0 {
		return false
	}
	l.Content = slices.Delete(l.Content, at, at+1)
	if len(l.Content) == 0 {
		remove(parent, key)
	}
	return true
}

// ensure returns the mapping or sequence at a key. It creates one if the key is missing or null.
func ensure(m *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	n := field(m, key)
	if n == nil || n.Kind != kind {
		n = &yaml.Node{Kind: kind}
		put(m, key, n)
	}
	if len(n.Content) == 0 {
		n.Style &^= yaml.FlowStyle // env: [] should become a block
	}
	return n
}

// same reports whether two nodes have the same content. The order of keys matters.
func same(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && (a.Kind != yaml.ScalarNode || a.ShortTag() == b.ShortTag() && a.Value == b.Value) &&
		slices.EqualFunc(a.Content, b.Content, same)
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if truth.MatchString(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func quoted(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

func boolean(b bool) *yaml.Node {
	text := "false"
	if b {
		text = yes
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: text}
}

// mapping returns a mapping of alternating keys and values.
func mapping(texts ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, text := range texts {
		n.Content = append(n.Content, scalar(text))
	}
	return n
}
