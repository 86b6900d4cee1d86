// Package api keeps what Go programs may rely on: the exported names of the contract's packages, as text that a change of the API
// changes, too. "go test ./test/api -rewrite" writes the texts again.
package api
