// Package faults is what goes wrong in a history: a catalogue of kinds, how a seed draws from it, and when each
// fault happens.
//
// A fault acts through what a world offers, and through writes that anybody could make. Some faults know the protocol as
// an adversary does: they wait for one request between two steps of it. A fault says whether pods may have to move
// because of it. What else is right is not decided here.
//
// A history depends on the order of the catalogue, too: a new kind changes all histories.
package faults
