// Package fence ends contexts by the clock.
package fence

import "context"

// Context compares the deadline of strict mode with the clock whenever Err is called. So work that was suspended together with its
// process sees at once that its id is gone. Contexts derived from it do not call Err. They end a moment later, when the goroutines of this
// process run again.
type Context struct {
	context.Context //nolint:containedctx // it is one
	// Passed reports whether the deadline has passed. End ends the context then.
	Passed func() bool
	End    func()
}

// Err implements context.Context.
func (c Context) Err() error {
	if c.Passed() {
		c.End()
	}
	return c.Context.Err()
}
