// Package serve answers a program over HTTP. A Server serves the newest identity from a Hub, and receives the program's reports. Package agent uses it. The
// HTTP interface is stable; this Go API is not.
//
// The package decides nothing: it passes reports on and does not know what they mean for the id.
package serve
