package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
)

// errTimeout is the cause of a context that --timeout ended.
var errTimeout = errors.New("--timeout is over")

// errNoDir is of a command that has nowhere to publish.
var errNoDir = usageError{errors.New("--dir is empty: name the directory that the containers of the pod share, by default /var/run/idalloc")}

// inPod are the flags of the commands that act for a pod.
type inPod struct {
	*global
	podName, podNamespace, podUID string
	dir                           string
	timeout                       time.Duration
}

func (p *inPod) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.podName, "pod-name", "", "name of this pod [POD_NAME, from the downward API's metadata.name, or IDALLOC_POD_NAME]")
	f.StringVar(&p.podNamespace, "pod-namespace", "", "namespace of this pod [POD_NAMESPACE, from metadata.namespace, or IDALLOC_POD_NAMESPACE]")
	f.StringVar(&p.podUID, "pod-uid", "", "UID of this pod, to tell it, and at once what it left in --dir, from another pod of the same name [POD_UID, from metadata.uid, or IDALLOC_POD_UID]; without it that is found out from the API server")
	f.StringVar(&p.dir, "dir", "/var/run/idalloc", "directory to publish id, count, epoch, state, env and identity.json in")
	f.DurationVar(&p.timeout, "timeout", 0, "give up with exit code 3 when there is no slot within this time; 0 waits for ever")
}

// uid is empty if nobody said it.
func (p *inPod) uid() string { return cmp.Or(p.podUID, os.Getenv("POD_UID")) }

// allocator returns the options of this pod's allocator, without what publishes.
func (p *inPod) options(log logr.Logger) (allocator.Options, error) {
	pod := cmp.Or(p.podName, os.Getenv("POD_NAME"))
	if pod == "" {
		return allocator.Options{}, usageError{errors.New("this pod's name is not known: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)")}
	}
	s, namespace, err := p.connect()
	if err != nil {
		return allocator.Options{}, err
	}
	return allocator.Options{
		Store: s, Pod: pod, PodUID: types.UID(p.uid()), Namespace: cmp.Or(p.podNamespace, os.Getenv("POD_NAMESPACE"), namespace), Log: log,
	}, nil
}

// shelf is the directory that identities are published in, and whose it is.
type shelf struct {
	*publish.Dir
	none identity.Identity // what is published while there is no id
	uid  string            // of this pod, empty while it is not known
}

// open makes the directory ready. What another pod left in it, an id above all, is not in force.
// After a restart in place what this pod published stays in force until the first look says
// otherwise; then current is that.
func (p *inPod) open(o allocator.Options) (s *shelf, current identity.Identity, err error) {
	if p.dir == "" {
		return nil, current, errNoDir
	}
	s = &shelf{
		Dir: publish.New(p.dir), uid: p.uid(),
		none: identity.Pending(o.Pod, o.Namespace),
	}
	there, found, err := s.Current()
	if err != nil || !found || there.Pod != o.Pod || there.Namespace != o.Namespace || (s.uid != "" && s.Pod() != s.uid) {
		err = errors.Join(err, s.Note(identity.Identity{}), s.Publish(s.none))
		return s, s.none, err
	}
	if s.uid == "" {
		return s, s.none, nil // may be a predecessor's of the same name: not announced until claim tells
	}
	return s, there, nil
}

// claim makes the directory this pod's, whose UID is known now.
func (s *shelf) claim(uid string) error {
	if s.Pod() == uid {
		return nil
	}
	if err := s.Publish(s.none); err != nil {
		return err
	}
	return s.SetPod(uid)
}

// empty publishes that a pod that does not exist any more has no id.
func (s *shelf) empty() error {
	return s.Publish(s.none.Without(identity.StateLost))
}

// newAllocator finds the owner, and makes the directory this pod's.
func (s *shelf) newAllocator(ctx context.Context, o allocator.Options) (*allocator.Allocator, error) {
	o.Memory = s.Memory()
	a, err := allocator.New(ctx, o)
	if errors.Is(err, allocator.ErrPodGone) {
		return nil, errors.Join(err, s.empty())
	}
	if err != nil {
		return nil, noSlotIfLate(err)
	}
	return a, s.claim(a.PodUID())
}

// checkTimeout refuses a --timeout in which a pod in strict mode could not have an id.
func (p *inPod) checkTimeout(fenceAfter time.Duration) error {
	if p.timeout <= 0 || fenceAfter <= 0 {
		return nil
	}
	quarantine := assignment.QuarantineTime(fenceAfter)
	shortest := (quarantine + 2*time.Second - 1).Truncate(time.Second) // a second more, in whole seconds
	if p.timeout >= shortest {
		return nil
	}
	return usageError{fmt.Errorf("--timeout %s is over before there can be an id: with --fence-after %s the first start of a workload, and each pod that replaces one that vanished, "+
		"waits for a quarantine of %s: use --timeout %s or more, or 0 to wait for ever", p.timeout, fenceAfter, quarantine, shortest)}
}

// bounded ends with errTimeout after --timeout.
func (p *inPod) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("%w (%s)", errTimeout, p.timeout))
}
