package main

import (
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// program returns the program for commands that are not about a pod.
func (g *global) program() commands.Program {
	connect := func() (*store.Store, string, error) { return g.connect(0) }
	return commands.Program{Name: "idalloc", Connect: connect, Log: g.log.Logger, Formats: commands.Plain()}
}
