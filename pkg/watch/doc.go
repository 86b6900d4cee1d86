// Package watch finds a pod's owner and follows it.
//
// Resolve and the streams are of use by themselves. The package may change with any version.
//
// Resolve climbs from a pod to the object that carries the assignment. A Stream follows one object
// for ever: it survives disconnects, expired resource versions and API server restarts, and always
// gives the newest moment that it heard of, whole: count, assignment, hand-over and epoch together.
// What a stream says is news, not proof: nobody acts on an id because a watch event says so.
package watch
