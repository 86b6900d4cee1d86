package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	first, grown, shrunk = 5, 8, 3
	phases               = 4
	phaseTimeout         = 45 * time.Second
	// toRead and toLook are for a person at a terminal, before and after a phase.
	toRead = 3 * time.Second
	toLook = 2500 * time.Millisecond
)

// phase is a part of the story.
type phase struct {
	scene

	replicas int
	gone     []string // pods that must not be there at the end
	// prepare comes before the scene is introduced.
	prepare func(ctx context.Context) error
	// do is what the command of the scene says.
	do func(ctx context.Context) error
}

// play goes through the phases and the proof.
func play(ctx context.Context, s *stage) error {
	begin := time.Now()
	for number, next := range []func(frame) phase{s.start, s.grow, s.lose, s.shrink} {
		before := s.observer.mark()
		p := next(before)
		p.number, p.of = number+1, phases
		if err := s.play(ctx, p, before); err != nil {
			return err
		}
		if number == 0 {
			s.display.fold()
			s.display.say("The ids live in one annotation of the Deployment:",
				`$ kubectl get deployment worker -o jsonpath='{.metadata.annotations.idalloc\.dev/assignment}'`,
				s.observer.frame().assignment, "")
		}
	}
	s.display.fold()
	return s.prove(begin)
}

func (s *stage) play(ctx context.Context, p phase, before frame) error {
	if p.prepare != nil {
		if err := p.prepare(ctx); err != nil {
			return err
		}
	}
	s.display.begin(p.scene)
	if err := s.display.pause(ctx, toRead); err != nil {
		return err
	}
	s.display.clock()
	ctx, cancel := context.WithTimeoutCause(ctx, phaseTimeout, fmt.Errorf("phase %d (%s) did not end within %s", p.number, p.title, phaseTimeout))
	defer cancel()
	begin := time.Now()
	if err := p.do(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	after, err := s.observer.await(ctx, func(f frame) bool { return f.settled(p.replicas) && !f.shows(p.gone) })
	if err != nil {
		return s.unsettled(err, after)
	}
	took := time.Since(begin)
	s.display.draw(after)
	s.display.end(fmt.Sprintf("%s: %s. idalloc wrote to the Deployment %s.", seconds(took), changes(before, after), times(after.writes-before.writes)))
	return s.display.pause(ctx, toLook)
}

func (s *stage) start(frame) phase {
	return phase{
		scene: scene{
			title:   "Five pods start, and no id is given yet",
			command: "kubectl create -f deployment.yaml   # replicas: 5",
			look:    "Watch the ID column fill: a pod's workload starts only when the pod has an id. THE POD SAYS is what it answers over HTTP.",
		},
		replicas: first,
		do: func(ctx context.Context) error {
			return s.ns.Create(ctx, suite.Deployment(workload, first, s.podSpec()))
		},
	}
}

func (s *stage) grow(frame) phase {
	return phase{
		scene: scene{
			title:   "Scale up: five pods become eight",
			command: "kubectl scale deployment worker --replicas=8",
			look:    "Watch the old pods: no id moves, but each of them learns at once that it is one of 8.",
		},
		replicas: grown,
		do:       func(ctx context.Context) error { return s.ns.Scale(ctx, store.Deployment, workload, grown) },
	}
}

func (s *stage) lose(before frame) phase {
	const one, two = 1, 4
	lost := []string{before.holder(one), before.holder(two)}
	return phase{
		scene: scene{
			title:   "Two pods are lost",
			command: "kubectl delete pod " + strings.Join(lost, " "),
			look:    fmt.Sprintf("Watch ids %d and %d: a terminating pod keeps its id; when it is gone, its replacement gets exactly that id.", one, two),
		},
		replicas: grown,
		gone:     lost,
		do: func(ctx context.Context) error {
			for _, pod := range lost {
				if err := s.env.Client.CoreV1().Pods(s.ns.Name).Delete(ctx, pod, metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (s *stage) shrink(before frame) phase {
	first := []string{before.holder(0), before.holder(1)}
	return phase{
		scene: scene{
			title:   "Scale down: eight pods become three, and two that stay have to move",
			command: "kubectl scale deployment worker --replicas=3",
			look: "By itself idalloc makes Kubernetes stop the highest ids first, so nobody moves. To make it hard, the pods with ids 0 and 1 were " +
				"marked to go first (pod-deletion-cost: -1). Watch two survivors stop working, give up their ids and take 0 and 1.",
		},
		replicas: shrunk,
		prepare: func(ctx context.Context) error {
			patch := []byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`)
			for _, pod := range first {
				if _, err := s.env.Client.CoreV1().Pods(s.ns.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return nil
		},
		do: func(ctx context.Context) error { return s.ns.Scale(ctx, store.Deployment, workload, shrunk) },
	}
}
