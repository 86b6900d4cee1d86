// Package fence ends contexts by the clock.
package fence

import "context"

// Context checks whether the work must end whenever Err is called. So work that was suspended together with its process sees at once that its id is gone.
// Derived contexts do not call Err; they end a moment later, when the goroutines of this process run again.
type Context struct {
	context.Context //nolint:containedctx // it is one
	// Check ends the context if the work must end, by the clock or by what is known about the id.
	Check func()
}

// Err implements context.Context.
func (c Context) Err() error {
	c.Check()
	return c.Context.Err()
}
