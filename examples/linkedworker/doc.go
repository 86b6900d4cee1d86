// Linkedworker is a program that claims its id itself, through package idalloc, without an idalloc
// container beside it. config/examples/linked runs it.
//
// What to copy from it is the call of idalloc.Run in main.go. Its function is the whole work done
// under an id. Run calls it with an identity that is held, ends its context when the id is revoked or
// the count changed, and calls it again with the next one. No other pod gets the slot before the
// function has returned, so return only when nothing uses the id any more.
//
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
//	HTTP_ADDRESS              for the readiness probe; default :8080
package main
