package loop

import (
	"strings"
	"time"
)

const (
	// quiet is how long a sentence that was logged is not logged again, however often it changes places with another one.
	quiet = time.Minute
	// reminder is how long trouble lasts until it is logged again.
	reminder = 10 * time.Minute
)

// notes says what is worth a line in the log. A key stands for a sentence. Its zero value is ready.
type notes struct {
	last string               // the key that the log ends with
	said map[string]time.Time // when each was logged
}

// due reports whether a sentence is to be logged. One that is new is, one that was logged a moment ago is not yet, and one that lasts is logged
// again only if it is trouble.
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

// withoutNumbers leaves out what changes in a sentence from step to step: digits, and what stands between them in a range, an address or a
// time.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789.,:-+", r) {
			return -1
		}
		return r
	}, text)
}
