package contact

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// readAgain is how often a process reads what its stream does not know.
const readAgain = 10 * time.Second

// Lag is that of a stream that does not know what the newest read has found. The object is read again only when the stream says something else, or
// after a while.
type Lag struct {
	says  string
	until time.Time
}

// Asks reports whether to read the object because of what the stream says now.
func (l *Lag) Asks(says string, now time.Time) bool {
	if l.says == says && now.Before(l.until) {
		return false
	}
	*l = Lag{says, now.Add(readAgain)}
	return true
}

// Until is when to read the object again, whatever the stream says.
func (l *Lag) Until() time.Time { return l.until }

// Newer reports whether version a is later than b, or b is not known. Versions that cannot be compared count as newer.
func Newer(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
