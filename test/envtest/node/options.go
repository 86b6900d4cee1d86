package node

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

const (
	// name is that of the Node object.
	name = "process-node"
	// maxBackOff is the longest wait before a restart in place; the first one is a sixteenth of it. A kubelet waits up to five minutes.
	maxBackOff = 2 * time.Second
	// searchPath is the processes' PATH.
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Options configures Start. The zero value is ready to use.
type Options struct {
	// Kubeconfig returns the path of the kubeconfig that a pod's processes get as
	// KUBECONFIG. Nil: they get none. It is called again while it fails.
	Kubeconfig func(ctx context.Context, pod *corev1.Pod) (string, error)
	// Images maps an image's name, with or without tag, to the program that a
	// container without a command runs.
	Images map[string]string
	// Play, if there is one, lives each pod's life instead of processes, and reports what there is to report. The context life ends when the pod
	// is to stop, and all with the node. The pod's object is removed when Play returns true.
	Play func(all, life context.Context, pod *corev1.Pod) (over bool)
	// ProbePeriod replaces periodSeconds of every probe. Zero: as specified.
	ProbePeriod time.Duration
	// Log gets what a kubelet would log. The zero value discards it.
	Log logr.Logger
}
