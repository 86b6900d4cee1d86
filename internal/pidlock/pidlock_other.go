//go:build !linux

package pidlock

// Hold does nothing: pods run on Linux.
func Hold(string, string) (release func(), err error) { return func() {}, nil }
