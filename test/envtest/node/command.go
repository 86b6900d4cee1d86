package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command returns the container's main process, not yet started.
func (c *container) command() (*exec.Cmd, error) {
	argv := append(append([]string{}, c.spec.Command...), c.spec.Args...)
	if len(c.spec.Command) == 0 {
		program, ok := c.pod.node.program(c.spec.Image)
		if !ok {
			return nil, fmt.Errorf("container %s has no command, and Options.Images no program for %q", c.spec.Name, c.spec.Image)
		}
		argv = append([]string{program}, argv...)
	}
	return c.commandOf(argv)
}

// commandOf returns a process in the container's surroundings.
func (c *container) commandOf(argv []string) (*exec.Cmd, error) {
	environment, err := c.environment()
	if err != nil {
		return nil, err
	}
	mounts := c.mounts()
	resolved := make([]string, len(argv))
	for i, arg := range argv {
		resolved[i] = mounts.replace(expand(arg, environment.declared))
	}
	dir := c.pod.home()
	if c.spec.WorkingDir != "" {
		dir = mounts.replace(c.spec.WorkingDir)
	}
	return &exec.Cmd{
		Path: lookPath(resolved[0], environment.real["PATH"]),
		Args: resolved,
		Env:  environment.list(),
		Dir:  dir,
	}, nil
}

func (n *Node) program(image string) (string, bool) {
	name := image
	for {
		if program, ok := n.options.Images[name]; ok {
			return program, true
		}
		// Without digest, then without tag; a colon before the last slash is a registry's port.
		cut := strings.LastIndexByte(name, '@')
		if cut < 0 {
			cut = strings.LastIndexByte(name, ':')
		}
		if cut < 0 || strings.Contains(name[cut:], "/") {
			return "", false
		}
		name = name[:cut]
	}
}

// lookPath finds a program in the container's PATH, not in this process's own.
func lookPath(program, path string) string {
	if strings.Contains(program, "/") {
		return program
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, program)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate
		}
	}
	return program
}
