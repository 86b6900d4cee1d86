// Package reconciler carries out what package decision decides: it reads from caches, and sends patches.
//
// One owner is one key of the queue, and one reconcile of it is a pass: a loop that decides, does the first step that is due and decides again. What is known
// of a pod may be old, because it comes from a cache. Each write tests what it replaces, so an old view costs a request and no more. T3 is a list from the API
// server, and so is what a removal is decided on. What outlasts a pass stands in one type, memory, and a restart loses nothing but time with it.
package reconciler
