package inject

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// Limits: aliases of aliases can grow without bound, and an alias may be part of the node that it refers to.
const (
	maxNodes = 1 << 20
	maxDepth = 1000
)

// expand returns a copy of a document without aliases and merge keys: each is replaced by a copy of its content. So a change in one place changes nothing
// elsewhere.
func expand(root *yaml.Node) (*yaml.Node, error) {
	e := expander{}
	c := e.copy(root, 0)
	if e.tooLarge {
		return nil, errors.New("the aliases of a document grow too large")
	}
	return c, nil
}

type expander struct {
	nodes    int
	tooLarge bool
}

func (e *expander) copy(n *yaml.Node, depth int) *yaml.Node {
	c := *n
	c.Anchor, c.Content = "", nil
	if e.nodes++; e.nodes > maxNodes || depth > maxDepth {
		e.tooLarge = true
		return &c
	}
	if n.Kind == yaml.AliasNode {
		target := e.copy(n.Alias, depth+1)
		target.HeadComment, target.LineComment, target.FootComment = n.HeadComment, n.LineComment, n.FootComment
		return target
	}
	for _, child := range n.Content {
		c.Content = append(c.Content, e.copy(child, depth+1))
	}
	if c.Kind == yaml.MappingNode {
		merge(&c)
	}
	return &c
}

// merge resolves the merge key of a mapping whose aliases are expanded. Keys of the mapping itself take precedence.
func merge(m *yaml.Node) {
	i := mergeKey(m)
	if i < 0 {
		return
	}
	sources := []*yaml.Node{m.Content[i+1]}
	if sources[0].Kind == yaml.SequenceNode {
		sources = sources[0].Content
	}
	m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
	for _, s := range sources {
		for k := 0; s.Kind == yaml.MappingNode && k < len(s.Content); k += 2 {
			if field(m, s.Content[k].Value) == nil {
				m.Content = append(m.Content, s.Content[k], s.Content[k+1])
			}
		}
	}
}

func mergeKey(m *yaml.Node) int {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].ShortTag() == "!!merge" {
			return i
		}
	}
	return -1
}
