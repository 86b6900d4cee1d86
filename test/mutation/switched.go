package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// switchVariable names the mutant that a program is, by its number; without it the program is as it was written.
const switchVariable = "IDALLOC_MUTANT"

// switches is added to a package that has many mutants at once.
const switches = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv(%q))

func mutated(n int) bool { return mutantNumber == n }

func mutatedValue[T any](n int, value, other T) T {
	if mutated(n) {
		return other
	}
	return value
}

func mutatedLSS[T cmp.Ordered](n int, a, b T) bool { return a < b || (mutated(n) && a == b) }
func mutatedGTR[T cmp.Ordered](n int, a, b T) bool { return a > b || (mutated(n) && a == b) }
func mutatedLEQ[T cmp.Ordered](n int, a, b T) bool { return a < b || (!mutated(n) && a == b) }
func mutatedGEQ[T cmp.Ordered](n int, a, b T) bool { return a > b || (!mutated(n) && a == b) }

type mutatedNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func mutatedADD[T mutatedNumber](n int, a, b T) T {
	if mutated(n) {
		return a - b
	}
	return a + b
}

func mutatedSUB[T mutatedNumber](n int, a, b T) T {
	if mutated(n) {
		return a + b
	}
	return a - b
}
`

// numberMark stands for a mutant's number in the text of a switch.
const numberMark = "\x00"

// switched returns a file's text with many mutants. Their edits nest, because what they wrap does.
func switched(original []byte, all []*mutant) []byte {
	type piece struct {
		edit

		opens bool
		span  int // of the whole mutant
		order int
	}
	var pieces []piece
	for order, m := range all {
		span := m.switched[len(m.switched)-1].to - m.switched[0].from
		for i, e := range m.switched {
			e.text = strings.ReplaceAll(e.text, numberMark, strconv.Itoa(m.number))
			pieces = append(pieces, piece{edit: e, opens: i == 0, span: span, order: order})
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int {
		switch {
		case a.from != b.from:
			return cmp.Compare(a.from, b.from)
		case a.opens != b.opens: // what ends here ends before something begins
			if a.opens {
				return 1
			}
			return -1
		case a.opens: // the outer one first
			return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.order, b.order))
		}
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(b.order, a.order))
	})
	var out []byte
	at := 0
	for _, p := range pieces {
		out = append(out, original[at:p.from]...)
		out = append(out, p.text...)
		at = p.to
	}
	return append(out, original[at:]...)
}

// number numbers the mutants of a package that can be switched on in one program.
func (p *program) number(s *source, all []*mutant) error {
	helper, err := p.parseSwitches(s)
	if err != nil {
		return err
	}
	for i, m := range all {
		m.number = i + 1
		if m.noCompile || m.switched == nil || !p.compiles(s, m.base, switched(m.original, []*mutant{m}), helper) {
			m.number = 0
		}
	}
	return nil
}

// switchFiles returns the package's files with all its numbered mutants, by their paths.
func switchFiles(all []*mutant) map[string]string {
	byFile := map[string][]*mutant{}
	out := map[string]string{}
	for _, m := range all {
		if m.number > 0 {
			byFile[m.path] = append(byFile[m.path], m)
		}
	}
	for path, mutants := range byFile {
		out[path] = string(switched(mutants[0].original, mutants))
		out[filepath.Join(filepath.Dir(path), "mutated_switches.go")] = fmt.Sprintf(switches, mutants[0].packageName, switchVariable)
	}
	return out
}

// writeOverlay writes files and the file that tells the go command of them. It returns the name of that.
func writeOverlay(dir string, files map[string]string) (string, error) {
	replace := map[string]string{}
	for path, content := range files {
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
