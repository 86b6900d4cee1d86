// Package reconciler carries out what package decision decides: it reads from caches, sends patches, and keeps no state that a restart would miss.
//
// One owner is one key of the queue, one plan, and one batch of patches. What is known of a pod may be old, because it comes from a cache. Each write
// tests what it replaces, so an old view costs a request and no more. T3 is a list from the API server, and so is what a removal is decided on.
package reconciler
