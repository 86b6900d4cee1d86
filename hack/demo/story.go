package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

const (
	workload    = "worker"
	tick        = "✓"
	partTimeout = 45 * time.Second
	// refresh is how often the pods are looked at.
	refresh = 100 * time.Millisecond
)

// manifest is the Deployment. Its program is a shell script; another process of the image logs the id every few milliseconds, for the proof.
const manifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: worker
spec:
  replicas: 3
  selector: {matchLabels: {app: worker}}
  template:
    metadata:
      labels:
        app: worker
        idalloc.dev/assign: controller # the one label
    spec:
      containers:
        - name: worker
          image: worker
          args: [files, sh, -c, 'trap "sleep 1; exit" TERM; while now="I am $IDALLOC_ID of $(cat /var/run/idalloc/count)";
            do [ "$now" = "$last" ] || echo "$now"; last=$now; sleep 0.1; done']
          env:
            - {name: IDALLOC_DIR, value: /var/run/idalloc}
            - {name: PROBE_DIR, value: %s}
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
`

// part is a part of the story. It is over when so many pods say that they have an id, and none is older if it renews all.
type part struct {
	title, look, command string
	pods                 int
	renews               bool
	after                string // a command at the end
}

func story() []part {
	return []part{{
		title:   "One label",
		look:    "No pod starts without an id. The program reads it from the variable IDALLOC_ID,\n  and the count from a file.",
		command: "grep -B3 'one label' worker.yaml; kubectl apply -f worker.yaml",
		pods:    3,
		after:   "kubectl logs -l app=worker",
	}, {
		title:   "A pod is lost",
		look:    "Its replacement waits until it is gone, and gets its id.",
		command: "kubectl delete pod --wait=false -l idalloc.dev/instance-id=1",
		pods:    3,
	}, {
		title: "A rolling update, with a surge",
		look: "Of three replicas Kubernetes may remove none (maxUnavailable 25%), and it adds one.\n" +
			"  The new pod needs an id of an old one, so idalloc-controller evicts one at a time.",
		command: "kubectl rollout restart deployment/worker",
		pods:    3, renews: true,
	}, {
		title:   "Three become five",
		look:    "No id moves, and each pod hears of the new count.",
		command: "kubectl scale deployment/worker --replicas=5",
		pods:    5,
		after:   "kubectl get pods -L idalloc.dev/instance-id",
	}}
}

// play goes through the parts and the proof.
func (s *stage) play(ctx context.Context) error {
	begin := time.Now()
	if err := os.WriteFile(filepath.Join(s.dir, "worker.yaml"), fmt.Appendf(nil, manifest, s.probes), 0o600); err != nil {
		return err
	}
	o := &observer{env: s.env, seen: map[string]bool{}, shown: map[string]row{}}
	all := story()
	for i, p := range all {
		s.say(fmt.Sprintf("%d/%d %s", i+1, len(all), p.title), "  "+p.look)
		if err := s.perform(ctx, o, p); err != nil {
			return err
		}
	}
	return s.prove(len(o.seen), time.Since(begin))
}

func (s *stage) perform(ctx context.Context, o *observer, p part) error {
	ctx, cancel := context.WithTimeoutCause(ctx, partTimeout, fmt.Errorf("%q did not end within %s", p.title, partTimeout))
	defer cancel()
	before, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := s.shell(ctx, p.command); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	begin := time.Now()
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		now, err := o.look(ctx)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		for _, line := range o.news(now) {
			s.say(fmt.Sprintf("  %5.1fs  %s", time.Since(begin).Seconds(), line))
		}
		if now.settled(p.pods) && (!p.renews || now.renewed(before)) {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	s.say("  " + tick + " " + seconds(time.Since(begin)))
	if p.after != "" {
		if err := s.shell(ctx, p.after); err != nil {
			return err
		}
	}
	s.say("")
	return nil
}

// prove compares what the programs logged themselves.
func (s *stage) prove(pods int, took time.Duration) error {
	records, err := overlap.Read(s.probes)
	if err != nil {
		return err
	}
	report, err := overlap.Check(records)
	if err != nil {
		return err
	}
	if len(report.Pods) != pods {
		return fmt.Errorf("%d pods ran, but %d of them logged what they saw", pods, len(report.Pods))
	}
	s.say(fmt.Sprintf("%s Every program logged its id every 5 ms: %d samples of %d pods. No two pods had one", tick, report.Samples, pods),
		"  id at one moment. The whole story took "+seconds(took)+".")
	return nil
}
