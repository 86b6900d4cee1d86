// Package invariant ends a program that is about to break a rule of the protocol. Its checks stay on in production.
package invariant

// BrokenError is what Must panics with: the rule.
type BrokenError string

// Error says what to do.
func (b BrokenError) Error() string {
	return "idalloc ends, because it was about to break a rule of its protocol: " + string(b) + ". This is a bug: please report it with the log"
}

// Must panics if a rule does not hold. The rule is a sentence. Call it where the rule would be broken, before anything acts on it.
func Must(holds bool, rule string) {
	if !holds {
		panic(BrokenError(rule))
	}
}
