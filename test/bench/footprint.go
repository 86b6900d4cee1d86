package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/process"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	footprintReplicas = 100
	footprintTimeout  = 3 * time.Minute
	kib               = 1024 // in a MiB
)

// footprint measures the size of the command as it is released, and the memory of one real watcher of a Deployment with a hundred replicas.
func footprint(ctx context.Context, env *suite.Suite, _ options) ([][]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, footprintTimeout, fmt.Errorf("not done after %s", footprintTimeout))
	defer cancel()
	binary, err := program.Build(ctx, env.ControlPlane.Dir(), ".", "idalloc")
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	m, err := watcherMemory(ctx, env, binary)
	return [][]string{{"binary MB", "replicas", "resident MiB", "its own MiB", "at most MiB"}, {
		table.Megabytes(float64(info.Size())), strconv.Itoa(footprintReplicas), table.Decimals(m.Resident/kib, 1), table.Decimals(m.Anonymous/kib, 1), table.Decimals(m.Peak/kib, 1),
	}}, err
}

// watcherMemory lets all pods but one claim in this process and runs the command for the last one.
func watcherMemory(ctx context.Context, env *suite.Suite, binary string) (m program.Memory, err error) {
	w, err := newWorkload(ctx, env, idle(footprintReplicas))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	address, err := controlplane.FreeAddress(ctx)
	if err != nil {
		return m, err
	}
	watched := w.pods[0].Name
	return w.watch(ctx, binary, watched, address, func(ctx context.Context, watcher *process.Process) error {
		others, err := w.claimants(ctx, w.pods[1:])
		if err != nil {
			return err
		}
		all, _ := claimAll(ctx, protocols()[0], others, footprintTimeout)
		defer leaveAll(all)
		if _, err := having(all); err != nil {
			return err
		}
		if err := published(ctx, w.ids(watched), watcher); err != nil {
			return err
		}
		return scrape(ctx, address)
	})
}

// ids is the directory in which the command publishes the id of a pod.
func (w *workload) ids(pod string) string {
	return filepath.Join(w.env.ControlPlane.Dir(), "ids", w.Name, pod)
}

// watch runs the command for a pod, calls meanwhile, and returns the command's memory once that has settled.
func (w *workload) watch(ctx context.Context, binary, pod, address string, meanwhile func(context.Context, *process.Process) error) (m program.Memory, err error) {
	group, err := process.NewGroup()
	if err != nil {
		return m, err
	}
	defer group.Close()
	config, err := w.Config(ctx)
	if err != nil {
		return m, err
	}
	kubeconfig, err := w.env.ControlPlane.WriteKubeconfig(pod, config)
	if err != nil {
		return m, err
	}
	watch := exec.Command(binary, "watch", "--dir", w.ids(pod), "--http-address", address) //nolint:gosec,noctx // the project's own command; the group ends it
	watch.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME="+pod, "POD_NAMESPACE="+w.Name)
	child, err := group.Start(watch)
	if err != nil {
		return m, err
	}
	if err := meanwhile(ctx, child); err != nil {
		return m, err
	}
	return program.SettledMemory(ctx, child.Pid())
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
