// Package profile draws what a history is about: the kind of workload and its size, what its programs are like, how
// fast the network is, and how long there are faults.
//
// A profile is a function of the seed, and it does not change while the history is played. Which faults a history has is
// not part of it.
package profile
