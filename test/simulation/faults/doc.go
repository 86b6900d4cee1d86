// Package faults is what goes wrong in a history: a catalogue of kinds, how a seed draws from it, and when each
// fault happens.
//
// A fault acts through what a world offers, and through writes that anybody could make. It knows the protocol as well as
// an adversary does: some faults wait for one request between two steps of it. What is right is not decided here; a
// fault only says whether pods may have to move because of it.
//
// A history is a function of its seed and of the order of the catalogue: a new kind changes all histories.
package faults
