package loop

import (
	"strings"
	"time"
)

const (
	// quiet is the minimum time before the same sentence is logged again, even if it alternates with another one.
	quiet = time.Minute
	// reminder is the time after which lasting trouble is logged again.
	reminder = 10 * time.Minute
)

// notes decides what is worth a line in the log. A key stands for a sentence. The zero value is ready to use.
type notes struct {
	last string               // the key of the last line
	said map[string]time.Time // when each was logged
}

// due reports whether a sentence should be logged. A new sentence is due. One that was logged a moment ago is not due yet. A lasting one is due again only if
// it is trouble.
func (n *notes) due(key string, trouble bool, now time.Time) bool {
	at, known := n.said[key]
	wait := quiet
	if key == n.last {
		wait = reminder
		if !trouble {
			return false
		}
	}
	if known && now.Sub(at) < wait {
		return false
	}
	n.last = key
	if n.said == nil {
		n.said = map[string]time.Time{}
	}
	for k, at := range n.said {
		if now.Sub(at) >= reminder {
			delete(n.said, k)
		}
	}
	n.said[key] = now
	return true
}

// withoutNumbers removes what changes in a sentence from step to step: digits, and the characters between them in a range, an address or a time.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789.,:-+", r) {
			return -1
		}
		return r
	}, text)
}
