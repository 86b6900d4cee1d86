package contact

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// readAgain is the interval at which a process reads what its stream does not show.
const readAgain = 10 * time.Second

// Lag limits reads of an object whose stream lags behind the newest read. The object is read again only when the stream changes, or after readAgain.
type Lag struct {
	says  string
	until time.Time
}

// Asks reports whether to read the object because of the stream's present state.
func (l *Lag) Asks(says string, now time.Time) bool {
	if l.says == says && now.Before(l.until) {
		return false
	}
	*l = Lag{says, now.Add(readAgain)}
	return true
}

// Until returns when to read the object again, even if the stream does not change.
func (l *Lag) Until() time.Time { return l.until }

// Newer reports whether version a is later than b, or b is unknown. Versions that cannot be compared count as newer.
func Newer(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
