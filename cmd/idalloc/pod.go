package main

import (
	"cmp"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator"
)

// errNoDir means that a command has no directory in which to publish.
var errNoDir = cli.Usagef("--dir is empty: name the directory that the containers of the pod share, by default /var/run/idalloc")

// inPod holds the flags of the commands that act for a pod.
type inPod struct {
	*global
	podName, podNamespace, podUID string
	dir                           string
	timeout                       time.Duration
}

func (p *inPod) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.podName, "pod-name", "", "name of this pod [POD_NAME or IDALLOC_POD_NAME]")
	f.StringVar(&p.podNamespace, "pod-namespace", "", "its namespace [POD_NAMESPACE or IDALLOC_POD_NAMESPACE]")
	f.StringVar(&p.podUID, "pod-uid", "", "its UID; by default idalloc asks [POD_UID or IDALLOC_POD_UID]")
	f.StringVar(&p.dir, "dir", "/var/run/idalloc", "directory for the files id, count, token and others")
	f.DurationVar(&p.timeout, "timeout", 0, "time to wait for a slot, then exit code 3; 0 is no limit")
}

// bindPartitions adds the flag --partitions: the program works on partitions.
func bindPartitions(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, partitionsFlag, false, "the program works on partitions [IDALLOC_WITH_PARTITIONS]")
}

// uid returns the pod's UID, or "" if it is not given.
func (p *inPod) uid() string { return cmp.Or(p.podUID, os.Getenv("POD_UID")) }

// options returns the common options of init, watch and run. With needsDir, it refuses an empty --dir.
func (p *inPod) options(needsDir bool, fenceAfter time.Duration) (agent.Options, error) {
	log, err := p.log.Logger()
	if err != nil {
		return agent.Options{}, err
	}
	if p.timeout < 0 {
		return agent.Options{}, cli.Usagef("--timeout %s: use 0 or more", p.timeout)
	}
	pod, namespace := cmp.Or(p.podName, os.Getenv("POD_NAME")), cmp.Or(p.podNamespace, os.Getenv("POD_NAMESPACE"))
	if pod == "" || namespace == "" {
		// Error: exit code 2: a variable is missing.
		// Do: set `POD_NAME` and `POD_NAMESPACE` from the downward API.
		return agent.Options{}, cli.Usagef("the name or namespace of this pod is missing: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)")
	}
	s, _, err := p.connect(fenceAfter)
	if err != nil {
		return agent.Options{}, err
	}
	if needsDir && p.dir == "" {
		return agent.Options{}, errNoDir
	}
	return agent.Options{
		Allocator: allocator.Options{
			Store: s, Pod: pod, PodUID: types.UID(p.uid()), Namespace: namespace, Log: log,
		},
		Dir: p.dir, Timeout: p.timeout, FenceAfter: fenceAfter, Alone: true, Version: version,
	}, nil
}
