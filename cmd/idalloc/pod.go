package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		none: identity.Identity{State: identity.StatePending, ID: identity.None, Pod: o.Pod, Namespace: o.Namespace},
	}
	there, found, err := s.Current()
	if err != nil || !found || there.Pod != o.Pod || there.Namespace != o.Namespace || (s.uid != "" && s.owner() != s.uid) {
		err = errors.Join(err, s.note(identity.Identity{}), s.Publish(s.none))
		return s, s.none, err
	}
	if s.uid == "" {
		return s, s.none, nil // may be a predecessor's of the same name: not announced until claim tells
	}
	return s, there, nil
}

// claim makes the directory this pod's, whose UID is known now.
func (s *shelf) claim(uid string) error {
	if s.owner() == uid {
		return nil
	}
	if err := s.Publish(s.none); err != nil {
		return err
	}
	if err := os.WriteFile(s.marker(), []byte(uid+"\n"), 0o644); err != nil { //nolint:gosec // a UID is no secret, and other users' containers read here
		return fmt.Errorf("idalloc: %w: mount a writable emptyDir at --dir", err)
	}
	return nil
}

// empty publishes that a pod that does not exist any more has no id.
func (s *shelf) empty() error {
	lost := s.none
	lost.State = identity.StateLost
	return s.Publish(lost)
}

// note keeps the id that the workload is about to lose for noted: the files do not show it any more,
// but a process that restarts meanwhile has to ask the workload about it. An id that is not assigned
// is none.
func (s *shelf) note(id identity.Identity) error {
	var err error
	if id.Assigned() {
		err = s.writeNote(id)
	} else if err = os.Remove(s.lastID()); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("idalloc: the id that is given up cannot be kept: %w: mount a writable emptyDir at --dir", err)
	}
	return nil
}

// writeNote leaves no half a note when the process dies in between.
func (s *shelf) writeNote(id identity.Identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	next := s.lastID() + ".new"
	if err := os.WriteFile(next, append(b, '\n'), 0o644); err != nil { //nolint:gosec // no secret, and other users' containers read here
		return err
	}
	return os.Rename(next, s.lastID())
}

// noted returns what note kept, which is not assigned if that was none.
func (s *shelf) noted() (id identity.Identity, err error) {
	b, err := os.ReadFile(s.lastID())
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	if err != nil {
		return identity.Identity{}, fmt.Errorf("idalloc: which id is being given up is not known: delete the pod: %w", err)
	}
	return id, nil
}

func (s *shelf) lastID() string { return filepath.Join(s.Path(), ".last-id") }

func (s *shelf) marker() string { return filepath.Join(s.Path(), ".pod-uid") }

func (s *shelf) owner() string {
	uid, err := os.ReadFile(s.marker())
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(uid))
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
