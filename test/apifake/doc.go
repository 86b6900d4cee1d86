// Package apifake is an API server for tests of one package: objects in memory, behind HTTP, which it reads, lists, watches
// and patches as a real one does. What needs controllers or faults is for test/simulation.
package apifake
