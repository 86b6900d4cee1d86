package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// besideProgram runs a program that reads the files in dir, and logs what they say until it has ended. The program
// is told to stop when this process is.
func besideProgram(ctx context.Context, w *overlap.Writer, dir string, command []string) error {
	if len(command) == 0 {
		return errors.New("name the program that reads the files")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	program := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the pod's author names the program
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	if err := program.Start(); err != nil {
		return err
	}
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		ended <- program.Wait()
	}()
	var unreadable error
	err := w.Until(over, func() (id, count int, token int64) {
		now, err := identity.Read(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return overlap.Nothing()
		case err != nil:
			unreadable = err
			stop()
			return overlap.Nothing()
		}
		return now.ID, now.Count, now.Token
	})
	stop()
	end := <-ended
	if errors.Is(end, context.Canceled) {
		end = nil // it stopped as it was told to
	}
	return errors.Join(err, unreadable, end)
}

func printFiles(out io.Writer, dir string) error {
	for _, name := range []string{"id", "count", "token", "state", identity.FileName, "env"} {
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the pod's author names the directory
		switch {
		case errors.Is(err, fs.ErrNotExist):
			_, err = fmt.Fprintf(out, "==> %s: no such file\n", name)
		case err == nil:
			_, err = fmt.Fprintf(out, "==> %s\n%s", name, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crashContainer ends process 1 the way a bug would: a Go program answers this signal with a stack
// dump and exit code 2. SIGKILL would do nothing, the kernel protects process 1 from it inside its
// own container.
func crashContainer() error {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return errors.New("crash is for use in a container: here, process 1 is the whole machine's")
	}
	return syscall.Kill(1, syscall.SIGQUIT)
}
