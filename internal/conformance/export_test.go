package conformance

import "slices"

// Two returns the things on which two pods work. There are none until a step was refused.
func (c *Checker) Two() (things []string) {
	for x, pods := range c.work {
		if len(pods) > 1 {
			things = append(things, x)
		}
	}
	slices.Sort(things)
	return things
}
