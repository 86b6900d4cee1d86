// Package world is the simulated cluster in which the production code runs.
//
// Each process is a run of pkg/context, or of the allocator with the options of a command, as it is shipped. World has what they meet: the
// network on their way to the server, controllers, kubelets and nodes, work that acts under an id, and virtual time.
// Everything that is random is drawn by dice that are derived from names, so a seed gives one history.
//
// A world does what it is told and takes no sides: it draws no faults, and it does not know what is right. It tells a
// Witness what happens, and asks for Mischief where one mishap leads to another. What can go wrong is here all the same: to lose a
// request, to suspend a node or to hold a process up is part of how the world works.
package world
