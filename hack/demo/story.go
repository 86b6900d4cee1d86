package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	phaseTimeout = 45 * time.Second
	// refresh is how often the pods are looked at.
	refresh = 100 * time.Millisecond
)

// phase is a part of the story. It is over when so many pods hold their ids.
type phase struct {
	title, command, look string
	replicas             int
	do                   func(ctx context.Context) error
}

func (s *stage) phases() []phase {
	scale := func(replicas int32) func(context.Context) error {
		return func(ctx context.Context) error { return s.ns.Scale(ctx, store.Deployment, workload, replicas) }
	}
	return []phase{{
		title:   "Five pods start, and no id is given yet",
		command: "kubectl create -f deployment.yaml   # replicas: 5",
		look: `Watch the ID column fill: a pod's program starts only when the pod has an id.
  THE POD SAYS is what it answers over HTTP.`,
		replicas: 5,
		do:       func(ctx context.Context) error { return s.ns.Create(ctx, suite.Deployment(workload, 5, s.podSpec())) },
	}, {
		title:    "Scale up: five pods become eight",
		command:  "kubectl scale deployment worker --replicas=8",
		look:     "Watch the old pods: no id moves, but each of them learns at once that it is one of 8.",
		replicas: 8,
		do:       scale(8),
	}, {
		title:   "Two pods are lost",
		command: "kubectl delete pod -l 'idalloc.dev/instance-id in (1,4)'",
		look: `Watch ids 1 and 4: a terminating pod keeps its id; when it is gone, its replacement
  gets exactly that id.`,
		replicas: 8,
		do: func(ctx context.Context) error {
			lost := metav1.ListOptions{LabelSelector: "idalloc.dev/instance-id in (1,4)"}
			return s.env.Client.CoreV1().Pods(s.ns.Name).DeleteCollection(ctx, metav1.DeleteOptions{}, lost)
		},
	}, {
		title:   "Scale down: eight pods become three, and two that stay have to move",
		command: "kubectl scale deployment worker --replicas=3",
		look: `By itself idalloc makes Kubernetes stop the highest ids first, so no pod moves. To make
  it hard, the pods with ids 0 and 1 are marked to go first (pod-deletion-cost: -1).
  Watch two survivors stop working, give their slots away and take 0 and 1.`,
		replicas: 3,
		do:       func(ctx context.Context) error { return errors.Join(s.mark(ctx), scale(3)(ctx)) },
	}}
}

// mark makes the pods with ids 0 and 1 the first to go.
func (s *stage) mark(ctx context.Context) error {
	patch := []byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`)
	var errs []error
	for pod, id := range s.observer.before {
		if id < 2 {
			_, err := s.env.Client.CoreV1().Pods(s.ns.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// play goes through the phases and the proof.
func (s *stage) play(ctx context.Context) error {
	begin := time.Now()
	for i, p := range s.phases() {
		s.display.say(fmt.Sprintf("%d/4 %s", i+1, p.title), "  $ "+p.command, "  "+p.look)
		if err := s.perform(ctx, p); err != nil {
			return err
		}
		if i == 0 {
			s.display.say("The ids live in one annotation of the Deployment:",
				`$ kubectl get deployment worker -o jsonpath='{.metadata.annotations.idalloc\.dev/assignment}'`,
				fmt.Sprint(s.observer.assignment.Load()), "")
		}
	}
	return s.prove(begin)
}

func (s *stage) perform(ctx context.Context, p phase) error {
	before, err := s.observer.look(ctx)
	if err != nil {
		return err
	}
	s.observer.before = before.holders
	ctx, cancel := context.WithTimeoutCause(ctx, phaseTimeout, fmt.Errorf("%q did not end within %s", p.title, phaseTimeout))
	defer cancel()
	begin, writes := time.Now(), s.observer.writes.Load()
	s.display.clock = begin
	if err := p.do(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	after, err := s.follow(ctx, p.replicas)
	if err != nil {
		return s.unsettled(err, after)
	}
	s.display.say(fmt.Sprintf("  %s %s: %s", tick, seconds(time.Since(begin)), changes(before, after)), "    idalloc wrote to the Deployment "+times(s.observer.writes.Load()-writes), "")
	return nil
}

// follow shows what changes, until so many pods hold their ids.
func (s *stage) follow(ctx context.Context, replicas int) (frame, error) {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	var last frame
	for {
		now, err := s.observer.look(ctx)
		if err != nil {
			return last, errors.Join(context.Cause(ctx), err)
		}
		last = now
		s.display.draw(now)
		if now.settled(replicas) {
			return now, nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// unsettled adds to the error of a phase what the pods that are not fine wrote last.
func (s *stage) unsettled(err error, f frame) error {
	err = fmt.Errorf("%w: %d pods hold an id", err, len(f.holders))
	for _, r := range f.rows {
		for _, container := range []string{"idalloc-init", "idalloc"} {
			log, lerr := os.ReadFile(s.env.Node.Logs(s.ns.Name, r.pod, container))
			if lerr != nil || r.fine {
				continue
			}
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			err = fmt.Errorf("%w\n%s (id %s) is %s; %s: %s", err, r.pod, r.id, r.state, container, lines[len(lines)-1])
		}
	}
	return err
}
