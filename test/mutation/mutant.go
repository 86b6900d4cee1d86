package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// edit replaces the text between two offsets.
type edit struct {
	from, to int
	text     string
}

// mutant is one change of one file.
type mutant struct {
	name      string // stable, see doc.go
	pkg       string // import path
	file      string // below the root
	path      string // the whole path
	base      string // the file's name
	line      int
	last      int // the last line that the change touches
	reached   int // the line that runs whenever the change may: for a condition of a case that of the switch
	kind      string
	function  string
	edits     []edit // in order
	original  []byte
	generic   bool // also: outside of functions. What the compiler makes of it is not in this package
	noCompile bool

	packageName string
	// switched are the edits of a program that has many mutants, nil where the change cannot be made while it runs. number is
	// the mutant's in that program, from 1 on.
	switched []edit
	number   int
}

// text is the changed file.
func (m *mutant) text() []byte {
	var out []byte
	at := 0
	for _, e := range m.edits {
		out = append(out, m.original[at:e.from]...)
		out = append(out, e.text...)
		at = e.to
	}
	return append(out, m.original[at:]...)
}

// diff shows the changed lines.
func (m *mutant) diff() string {
	before, after := strings.Split(string(m.original), "\n"), strings.Split(string(m.text()), "\n")
	var out strings.Builder
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"-", before}, {"+", after}} {
		for n := m.line; n <= m.last; n++ {
			if m.kind == "swap" || before[n-1] != after[n-1] {
				fmt.Fprintf(&out, "    %s %s\n", side.mark, strings.TrimSpace(side.lines[n-1]))
			}
		}
	}
	return out.String()
}

// nameAll names the mutants of one package: a hash of what is changed and of the statement around it, and a number where that is
// not unique.
func nameAll(all []*mutant, around []string) {
	seen := map[string]int{}
	for i, m := range all {
		h := sha256.New()
		whole := m.original[m.edits[0].from:m.edits[len(m.edits)-1].to]
		fmt.Fprintf(h, "%s\n%s\n", around[i], words(string(whole))) //nolint:errcheck // a hash takes everything
		for _, e := range m.edits {
			fmt.Fprintf(h, "%d %s\n", e.from-m.edits[0].from, words(e.text)) //nolint:errcheck // as above
		}
		name := path.Base(m.pkg) + "." + m.function + "/" + m.kind + "/" + hex.EncodeToString(h.Sum(nil))[:6]
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, seen[name])
		}
		m.name = name
	}
}

// words joins lines and spaces, so that formatting does not count.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// mutants makes all mutants of the targets whose names fit.
func (p *program) mutants(fit string) ([]*mutant, error) {
	names, err := regexp.Compile(fit)
	if err != nil {
		return nil, err
	}
	var out []*mutant
	for _, target := range p.targets {
		s, err := p.parse(target)
		if err != nil {
			return nil, err
		}
		var fitting []*mutant
		for _, m := range p.mutate(s) {
			if names.MatchString(m.name) {
				m.noCompile = !p.compiles(s, m.base, m.text())
				fitting = append(fitting, m)
			}
		}
		if err := p.number(s, fitting); err != nil {
			return nil, err
		}
		out = append(out, fitting...)
	}
	return out, nil
}

// choose returns a part of the mutants: the shard's, and of these as many as the sample says, drawn with the seed. A mutant's
// luck depends on nothing but its name.
func choose(all []*mutant, part shard, sample int, seed string) []*mutant {
	var out []*mutant
	for i, m := range all {
		if i%part.of == part.part-1 {
			out = append(out, m)
		}
	}
	if sample == 0 {
		return out
	}
	out = slices.DeleteFunc(out, func(m *mutant) bool { return m.noCompile })
	if sample >= len(out) {
		return out
	}
	luck := func(m *mutant) string {
		h := sha256.Sum256([]byte(seed + "\n" + m.name))
		return string(h[:])
	}
	slices.SortFunc(out, func(a, b *mutant) int { return cmp.Compare(luck(a), luck(b)) })
	return out[:sample]
}
