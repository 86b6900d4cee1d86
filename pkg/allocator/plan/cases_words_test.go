package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// words are what a line or a part of it may begin with, and how the rest of it is read.
type words map[string]func(rest string) error

func (w words) read(text string) error {
	for first, read := range w {
		if rest, ok := strings.CutPrefix(text+" ", first+" "); ok {
			return read(strings.TrimSpace(rest))
		}
	}
	return fmt.Errorf("unknown words %q", text)
}

// parts reads what is separated by commas.
func (w words) parts(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := w.read(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func readSlots(rest string) (slots, error) {
	out := slots{}
	for entry := range strings.FieldsSeq(rest) {
		text, name, ok := strings.Cut(entry, "=")
		id, err := strconv.Atoi(text)
		if _, twice := out[id]; !ok || err != nil || twice {
			return out, fmt.Errorf("%q is no SLOT=POD, or its slot is there twice", entry)
		}
		out[id] = name
	}
	return out, nil
}

// just is for words that nothing follows.
func just(do func()) func(string) error {
	return func(rest string) error {
		if rest != "" {
			return fmt.Errorf("unknown words %q", rest)
		}
		do()
		return nil
	}
}

func number(to *int) func(string) error {
	return func(rest string) (err error) { *to, err = strconv.Atoi(rest); return err }
}

func duration(to *time.Duration) func(string) error {
	return func(rest string) (err error) { *to, err = time.ParseDuration(rest); return err }
}

// epoch reads a number, or one that counts from the planner's clock: now, now+5, now-1.
func epoch(to *int64) func(string) error {
	return func(rest string) (err error) {
		from := int64(0)
		if after, ok := strings.CutPrefix(rest, "now"); ok {
			rest, from = cmp.Or(after, "0"), t0.UnixMilli()
		}
		*to, err = strconv.ParseInt(rest, 10, 64)
		*to += from
		return err
	}
}
