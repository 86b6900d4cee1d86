package node

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
)

// Pids returns the processes of a pod by container, without those that do not
// run now. It is empty for a pod that is not here.
func (n *Node) Pids(namespace, pod string) map[string]int {
	p, err := n.find(namespace, pod)
	if err != nil {
		return nil
	}
	pids := map[string]int{}
	for _, c := range p.all() {
		if child := c.running(); child != nil {
			pids[c.spec.Name] = child.Pid()
		}
	}
	return pids
}

// Signal sends a signal to the first process of a container. A container that
// SIGKILL hits is restarted in place, as its pod's restartPolicy says.
func (n *Node) Signal(namespace, pod, container string, signal syscall.Signal) error {
	p, err := n.find(namespace, pod)
	if err != nil {
		return err
	}
	for _, c := range p.all() {
		if c.spec.Name != container {
			continue
		}
		if child := c.running(); child != nil {
			child.Signal(signal)
			return nil
		}
	}
	return fmt.Errorf("%w: %s/%s %s", ErrNoPod, namespace, pod, container)
}

// Logs returns the file with a container's output. It stays until Stop; pods of the same name share it.
func (n *Node) Logs(namespace, pod, container string) string {
	return filepath.Join(n.dir, "logs", namespace, pod, container+".log")
}

// Evict does what a kubelet does under pressure: it kills the pod's processes
// with the least grace, sets its phase to Failed with reason Evicted, and leaves
// the object. It returns when the API server knows.
func (n *Node) Evict(ctx context.Context, namespace, pod string) error {
	p, err := n.find(namespace, pod)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.evicted = "The node was low on resource: memory."
	p.mu.Unlock()
	p.stop(0)
	select {
	case <-p.reported:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node: evict %s/%s: %w", namespace, pod, ctx.Err())
	}
}

// find prefers a pod whose object is there to one that was deleted by force.
func (n *Node) find(namespace, name string) (*pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found *pod
	for uid, p := range n.pods {
		if p.object.Namespace != namespace || p.object.Name != name {
			continue
		}
		if _, present := n.objects[uid]; present || found == nil {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s/%s", ErrNoPod, namespace, name)
	}
	return found, nil
}
