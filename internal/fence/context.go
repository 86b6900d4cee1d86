// Package fence ends contexts by the clock.
package fence

import "context"

// Context looks for the end of the work whenever Err is called. So work that was suspended together with its process sees at once that its id is
// gone. Contexts derived from it do not call Err. They end a moment later, when the goroutines of this process run again.
type Context struct {
	context.Context //nolint:containedctx // it is one
	// Check ends the context if the work may not go on, by the clock or by what is known of the id.
	Check func()
}

// Err implements context.Context.
func (c Context) Err() error {
	c.Check()
	return c.Context.Err()
}
