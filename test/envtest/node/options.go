package node

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

const (
	defaultName       = "process-node"
	defaultMaxBackOff = 2 * time.Second
	defaultPath       = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Options configures Start. The zero value is ready to use.
type Options struct {
	// Name of the Node object. Default: process-node.
	Name string
	// Dir takes volumes and logs. Empty: a temporary directory, removed by Stop.
	Dir string
	// Kubeconfig returns the path of the kubeconfig that a pod's processes get as
	// KUBECONFIG. Nil: they get none. It is called again while it fails.
	Kubeconfig func(ctx context.Context, pod *corev1.Pod) (string, error)
	// Images maps an image's name, with or without tag, to the program that a
	// container without a command runs.
	Images map[string]string
	// ProbePeriod replaces periodSeconds of every probe. Zero: as specified.
	ProbePeriod time.Duration
	// MaxBackOff is the longest wait before a restart in place; the first one is
	// a sixteenth of it. Default: 2 s (a kubelet waits up to 5 minutes).
	MaxBackOff time.Duration
	// Path is the processes' PATH. Default: the usual system directories.
	Path string
	// Log gets what a kubelet would log. The zero value discards it.
	Log logr.Logger
}

func (o *Options) setDefaults() {
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.MaxBackOff == 0 {
		o.MaxBackOff = defaultMaxBackOff
	}
	if o.Path == "" {
		o.Path = defaultPath
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
}
