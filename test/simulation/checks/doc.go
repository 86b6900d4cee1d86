// Package checks judges a history: which promises of idalloc were broken, and when.
//
// The judge looks at what processes act under and at what is stored, and believes nothing else. These are the promises:
//
//   - No two pods act under one id, and a later holder's token is higher.
//   - All claims, releases, deaths and sweeps of an id fit one order.
//   - Whoever can go on does so soon.
//   - When the faults stop, nobody waits beside a free slot. After an operator's repairs every slot is held and nobody
//     waits.
//   - Nobody moves without a cause.
//   - Requests are few.
//
// The judge changes nothing in the world. A checker that cannot fail is worth nothing, so mutants of the production code
// have to be caught by these.
package checks
