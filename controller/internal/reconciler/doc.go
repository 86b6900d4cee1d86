// Package reconciler carries out the decisions of package decision: it reads from caches, and sends patches.
//
// One owner is one key of the queue. One reconcile of it is a pass: a loop that decides, does the first step that is due, and decides again. The known state of
// a pod may be old, because it comes from a cache. Each write tests what it replaces, so an old view only costs a request. T3 and the data for removals are
// lists from the API server. What must survive a pass is in one type, memory. A restart loses it, and that costs only time.
package reconciler
