// Package gc finds the dead holders of an owner and frees their slots. Other programs may use it, but its API may change
// with any version.
//
// Sweep does what "idalloc gc" does. Survey only looks: it returns the live pods and the dead holders, and writes nothing.
// Both need a store.Store, which store.New makes from a rest.Config.
//
// A holder is dead when its pod object is gone, or when its phase is Succeeded or Failed. A Terminating pod is alive,
// because its process may still run. A pod that is not in a list may be alive, too, because somebody may have relabelled it
// to debug it. So this package confirms every victim by a read from the API server, never from a cache.
package gc
