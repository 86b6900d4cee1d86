// Package apifake is an API server for tests of one package: objects in memory, behind HTTP, which it reads, lists and patches as
// a real one does. What needs watches, controllers or time is for test/simulation.
package apifake
