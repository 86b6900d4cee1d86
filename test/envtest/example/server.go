package example

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/process"
)

const (
	// startTimeout is generous: a server starts within seconds, and within minutes where much else runs.
	startTimeout = 5 * time.Minute
	pollPeriod   = 50 * time.Millisecond
)

// Server is a server that a script in hack runs, with its data in a temporary directory.
type Server struct {
	// URL is its address, which stays the same when it starts again.
	URL string

	script, dir string
	args        []string
	group       *process.Group
	running     *process.Process
}

// StartServer runs hack/NAME with these arguments after the directory, and returns once the server answers. What it starts does not outlive
// this process.
func StartServer(ctx context.Context, name string, args ...string) (*Server, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	s := &Server{script: filepath.Join(root, "hack", name), args: args}
	if s.group, err = process.NewGroup(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "idalloc-"+name+"-"); err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("example: %w", err), s.Stop())
	}
	return s, nil
}

// Start starts the server again, with the data that it had and at the same address, and returns once it answers.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.path("script.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	if err := os.Remove(s.path("url")); err != nil && !os.IsNotExist(err) {
		return err
	}
	cmd := exec.Command(s.script, append([]string{s.dir}, s.args...)...) //nolint:gosec,noctx // the project's own script, which outlives ctx
	cmd.Stdout, cmd.Stderr = log, log
	if s.running, err = s.group.Start(cmd); err != nil {
		return err
	}
	return s.await(ctx)
}

// Said returns the content of a file that the script has written for its users.
func (s *Server) Said(file string) (string, error) {
	text, err := os.ReadFile(s.path(file))
	return strings.TrimSpace(string(text)), err
}

func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		url, err := os.ReadFile(s.path("url"))
		if err == nil {
			s.URL = strings.TrimSpace(string(url))
			return nil
		}
		select {
		case <-s.running.Done():
			said, _ := os.ReadFile(s.path("script.log")) // without it the exit code is all there is to say
			return fmt.Errorf("%s ended with exit code %d: %s", s.script, s.running.ExitCode(), said)
		case <-ctx.Done():
			return fmt.Errorf("%s: the server does not answer: %w", s.script, ctx.Err())
		case <-tick.C:
		}
	}
}

// Kill kills the server with SIGKILL and returns when it is gone. Its data stay for Start.
func (s *Server) Kill() {
	s.running.Kill()
	<-s.running.Done()
}

// Stop asks the server to end, waits until it has, and removes its data.
func (s *Server) Stop() error {
	if s.running != nil {
		s.running.Signal(syscall.SIGTERM)
		select {
		case <-s.running.Done():
		case <-time.After(time.Minute):
		}
	}
	s.group.Close()
	return os.RemoveAll(s.dir)
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }
