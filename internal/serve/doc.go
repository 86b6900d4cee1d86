// Package serve answers a program over HTTP: a Server says what the identity is, from a Hub, which has the newest one, and takes the
// program's reports. It is for package agent. The HTTP interface is stable; this Go API is not.
//
// The package decides nothing: it hands reports on, and it does not know what they mean for the id.
package serve
