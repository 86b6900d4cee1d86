package cases

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Terms are what a line of a case, or a part of it, may begin with, and how the rest of it is read.
type Terms map[string]func(rest string) error

// Read finds the longest term that a text begins with.
func (all Terms) Read(text string) error {
	longest := ""
	for first := range all {
		if strings.HasPrefix(text+" ", first+" ") && len(first) > len(longest) {
			longest = first
		}
	}
	if longest == "" {
		return fmt.Errorf("unknown words %q", text)
	}
	return all[longest](strings.TrimSpace(text[len(longest):]))
}

// Parts reads what is separated by commas.
func (all Terms) Parts(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := all.Read(strings.TrimSpace(part)); err != nil {
			return fmt.Errorf("%q: %w", part, err)
		}
	}
	return nil
}

// Just is for words that nothing follows.
func Just(do func()) func(string) error {
	return func(rest string) error {
		if rest != "" {
			return fmt.Errorf("unknown words %q", rest)
		}
		do()
		return nil
	}
}

// Text takes the rest as it is.
func Text(to *string) func(string) error {
	return func(rest string) error { *to = rest; return nil }
}

// Number reads a number.
func Number(to *int) func(string) error {
	return func(rest string) (err error) { *to, err = strconv.Atoi(rest); return err }
}

// Moment reads how long after a time something was.
func Moment(begin time.Time, to *time.Time) func(string) error {
	return func(rest string) error {
		after, err := time.ParseDuration(rest)
		*to = begin.Add(after)
		return err
	}
}

// Pairs reads entries such as 0=a.
func Pairs(rest string, do func(id int, value string) error) error {
	for entry := range strings.FieldsSeq(rest) {
		text, value, ok := strings.Cut(entry, "=")
		id, err := strconv.Atoi(text)
		if err != nil || !ok {
			return fmt.Errorf("%q is not ID=VALUE", entry)
		}
		if err := do(id, value); err != nil {
			return err
		}
	}
	return nil
}
