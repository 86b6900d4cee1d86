package differential

// The differences that are left. The steps avoid them; each says why idalloc cannot see it.
//
//   - Fields. The simulated objects have what idalloc or the simulator's controllers read, the real ones have all fields with
//     their defaults. view compares what is read. Items of a real list have no kind; idalloc does not read it.
//   - managedFields, and metadata.generation of pods and Leases. idalloc reads neither.
//   - A write that changes managedFields only, as scaling to the number that is there does: the real server has a new
//     resourceVersion. idalloc's compare-and-swap fails once more, as after any write of the status.
//   - A Job without labels gets its template's on the real server. idalloc reads no labels of an owner.
//   - Server-side apply takes away what an earlier apply of the same manager had and the new one has not, and creates
//     what is not there. The simulator's people apply one annotation, always with another value.
//   - Validation beyond annotations: the real server refuses bad names, labels and specs, a stale resourceVersion or another UID in
//     a merge patch, and sendInitialEvents without its companions. idalloc sends none of them.
//   - Of two reasons to refuse a request, the other one may come first (an unknown content type on a missing object).
//   - A list or watch from a resourceVersion that is not there yet: the real server waits three seconds and then
//     refuses with 504. The simulated server has one replica, whose cache is never asked for what it has not seen.
//   - Bookmarks about once a minute, and when a watch ends, are matters of time. Only the one that ends the first events
//     is compared.
//   - Foreground deletion and finalizers. The simulated owners are never Terminating.
//   - Expired continue tokens. No list of the simulated server is longer than a page.
