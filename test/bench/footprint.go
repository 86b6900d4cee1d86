package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/process"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	footprintReplicas = 100
	footprintTimeout  = 3 * time.Minute
	watcherKubeconfig = "watcher"
)

// footprint prints the size of the command as it is released, and the memory of one real watcher of a
// Deployment with a hundred replicas.
func footprint(ctx context.Context, env *suite.Suite, _ options, out, _ io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, footprintTimeout, fmt.Errorf("not done after %s", footprintTimeout))
	defer cancel()
	dir, err := os.MkdirTemp("", "idalloc-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := buildRelease(ctx, dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	memory, err := watcherMemory(ctx, env, binary, dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "idalloc, static and stripped: %.1f MB (%d bytes)\nidalloc watch, one of %d replicas: %s\n\n",
		float64(info.Size())/1e6, info.Size(), footprintReplicas, memory)
	return err
}

func buildRelease(ctx context.Context, dir string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "idalloc")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", binary, "./cmd/idalloc") //nolint:gosec // the project's own command
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/idalloc: %w\n%s", err, output)
	}
	return binary, nil
}

// watcherMemory lets all pods but one claim in this process and runs the command for the last one.
func watcherMemory(ctx context.Context, env *suite.Suite, binary, dir string) (m memory, err error) {
	w, err := newWorkload(ctx, env, plain(footprintReplicas))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	watched := w.pods[0].Name
	group, err := process.NewGroup()
	if err != nil {
		return m, err
	}
	defer group.Close()
	config, err := w.Config(ctx)
	if err != nil {
		return m, err
	}
	kubeconfig, err := env.ControlPlane.WriteKubeconfig(watcherKubeconfig, config)
	if err != nil {
		return m, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return m, err
	}
	ids := filepath.Join(dir, "ids")
	watch := exec.Command(binary, "watch", "--dir", ids, "--http-address", address) //nolint:gosec,noctx // the project's own command; the group ends it
	watch.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME="+watched, "POD_NAMESPACE="+w.Name)
	child, err := group.Start(watch)
	if err != nil {
		return m, err
	}
	others := make([]claimant, len(w.pods)-1)
	for i := range others {
		if others[i], err = w.claimant(ctx, i+1); err != nil {
			return m, err
		}
	}
	all, _ := claimAll(ctx, ours{}, others, footprintTimeout)
	defer leaveAll(all)
	for _, c := range all {
		err = errors.Join(err, c.err)
	}
	if err != nil {
		return m, err
	}
	if err := published(ctx, ids, child); err != nil {
		return m, err
	}
	if err := scrape(ctx, address); err != nil {
		return m, err
	}
	return settledMemory(ctx, child.Pid())
}

// scrape reads the watcher's metrics as often as a Prometheus does within half an hour.
func scrape(ctx context.Context, address string) error {
	const times = 60
	for range times {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
	}
	return nil
}

// published blocks until the watcher has published an id.
func published(ctx context.Context, dir string, watcher *process.Process) error {
	return wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		select {
		case <-watcher.Done():
			return false, fmt.Errorf("idalloc watch ended with code %d", watcher.ExitCode())
		default:
		}
		id, err := identity.Read(dir)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return id.Assigned() && id.Count == footprintReplicas, err
	})
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
