// Package world is the simulated cluster in which the production code runs.
//
// Each process is a run of package idalloc, or of the allocator with the options of a command. The world has what processes
// meet: the network on their way to the server, controllers, kubelets and nodes, work that acts under an id, and
// virtual time. Whatever is random in it is drawn by dice that are derived from names.
//
// A world draws no faults, and it does not know what is right. It tells a Witness what happens, and it asks for
// Mischief where one mishap leads to another. Losing a request, suspending a node and holding up a process are part of
// how the world works, so they are here; when they happen is decided by others.
package world
