// Package gc finds the dead holders of an owner and frees their slots. Other programs may use it, but its API may change
// with any version.
//
// Sweep implements "idalloc gc". It needs a store.Store, which store.New makes from a rest.Config. Package census finds the live pods.
//
// A holder is dead when its pod object is gone, or when its phase is Succeeded or Failed. A Terminating pod is alive, because its process may still run. A
// sweep never takes a slot from a pod whose receipt locks it: the map only proposes.
package gc
