// Package sample has known mutants, see ../../mutation_test.go.
package sample

import "errors"

var errSmall = errors.New("too small")

// Within is tested to its bounds.
func Within(n, low, high int) bool {
	return n >= low && n < high
}

// Loose is tested, but not at its bound.
func Loose(n int) error {
	if n < 10 {
		return errSmall
	}
	return nil
}

// Sum is tested; a mutant of it never ends.
func Sum(n int) int {
	sum := 0
	for n > 0 {
		sum += n
		n--
	}
	return sum
}

// Last is tested only with one writer, so the order of its writes does not matter to anybody.
func Last(to map[string]int) {
	to["a"] = 2
	to["b"] = 3
}

// Untested is not tested here, but in a package that imports this one.
func Untested(n int) int { return n + 1 }

// Unsigned has a condition of which the compiler makes nothing.
func Unsigned(n, high uint) bool {
	return n >= 0 && n < high
}

// Find returns a number that nobody looks at where it finds none.
func Find(n int) (at int, err error) {
	if n > 3 {
		return 0, errSmall
	}
	return 7, nil
}

// Grade has a case that no test enters.
func Grade(n int) string {
	switch {
	case n < 0:
		return "in debt"
	}
	return "in credit"
}
