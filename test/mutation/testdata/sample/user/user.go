// Package user imports sample.
package user

import "sample"

// Next is one more.
func Next(n int) int { return sample.Untested(n) }
