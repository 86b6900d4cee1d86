// Package watch finds a pod's owner and follows objects. Other programs may use it, but its API may change with any version.
//
// Resolve climbs from a pod to the object that carries the assignment. A Stream follows the objects of one list request until its context ends. It survives
// disconnects, expired resource versions and restarts of the API server. It always returns the newest version of an object as a whole: count, assignment
// and requests belong together. Owner, Pod and Selected start the streams that idalloc uses. Follow starts a stream of any type.
//
// A stream may lag behind. Show its data, or use it to decide when to read; no program may act on an id because of a watch event.
package watch
