// Package election lets one of several processes act at a time, with client-go's leader election.
//
// Leader election alone does not stop a former leader from acting for a moment longer. Each write of the autoscaler compares what it read, so two leaders only
// cost a conflict.
package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Candidate is a process that wants to lead.
type Candidate struct {
	Config *rest.Config
	// Namespace and Name are those of the Lease. Identity is unique among the candidates.
	Namespace, Name, Identity string
	// Duration is how long others wait for a silent leader. 0 means 15 s.
	Duration time.Duration
	Log      logr.Logger
	// Leads is called when the candidate starts to lead (true) and stops (false). It may be nil.
	Leads func(bool)
}

// ErrLost means that the candidate led and no longer does. Others may already lead.
var ErrLost = errors.New("the lease is lost: the API server could not be reached in time, or another process has it")

// Run waits until the candidate leads, then calls work. The context of work ends when ctx ends or the lease is lost. Run gives the lease back only after work
// has returned. It returns the error of work, ErrLost, or nil if ctx ended.
func (c Candidate) Run(ctx context.Context, work func(context.Context) error) error {
	client, err := coordination.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	if c.Duration == 0 {
		c.Duration = 15 * time.Second
	}
	// The election has its own context, which ends after the work. When it ends, the elector releases the lease.
	election, end := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), calm(c.Log)))
	defer end()
	lock := &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
		},
		stopped: make(chan struct{}),
	}
	result := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: c.Duration, RenewDeadline: c.Duration * 2 / 3, RetryPeriod: c.Duration * 2 / 15, ReleaseOnCancel: true, Name: c.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				defer end()
				defer close(lock.stopped)
				result <- c.lead(ctx, lease, work)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	// A waiting candidate has nothing to finish. A leader ends with its work.
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			end()
		}
	})()
	elector.Run(election)
	if lock.led {
		return <-result
	}
	return nil
}

// lock gives the lease back only after the work has stopped. The elector itself would also do it as soon as it cannot renew the lease.
type lock struct {
	resourcelock.Interface

	stopped chan struct{} // closed when the work has returned
	led     bool          // used only by the elector's goroutine
}

// Create creates the lease if RBAC allows it. The Role of autoscaler/config/base does not, because a rule for create cannot name an object.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the Lease %s does not exist, and this account may not make it: it is in autoscaler/config/base, apply it again: %w", l.Describe(), err)
	}
	l.led = l.led || err == nil
	return err
}

// Update takes, renews or gives back the lease. A record without a holder means that it is given back.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		select {
		case <-l.stopped:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := l.Interface.Update(ctx, record)
	l.led = l.led || err == nil
	return err
}

// lead calls work until ctx or the lease ends.
func (c Candidate) lead(ctx, lease context.Context, work func(context.Context) error) error {
	c.lights(true)
	defer c.lights(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lease, cancel)()
	err := work(ctx)
	if err == nil && lease.Err() != nil {
		return ErrLost
	}
	return err
}

func (c Candidate) lights(on bool) {
	if c.Leads != nil {
		c.Leads(on)
	}
}
