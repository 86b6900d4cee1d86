package main

import (
	"github.com/idalloc/idalloc/internal/people"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// program returns the program for commands that have nothing to do with a pod.
func (g *global) program() people.Program {
	connect := func() (*store.Store, string, error) { return g.connect(0) }
	return people.Program{Name: "idalloc", Connect: connect, Log: g.log.Logger, Formats: people.Plain()}
}
