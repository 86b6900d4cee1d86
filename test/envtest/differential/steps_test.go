package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// step is one thing that is done to both sides.
type step struct {
	about string
	do    func(ctx context.Context, s *side) error
}

func stepf(do func(ctx context.Context, s *side) error, format string, args ...any) step {
	return step{about: fmt.Sprintf(format, args...), do: do}
}

// generator draws steps. Those of one seed and number are always the same.
type generator struct {
	r *rand.Rand
	// watches counts those that were opened.
	watches, values int
	// applied is the annotation that this sequence applies.
	applied string
}

func newGenerator(seed, number uint64) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, number))} //nolint:gosec // it must be the same again, not secret
	g.applied = pick(g, "example.com/applied", assignment.HandoverKey)
	return g
}

func pick[T any](g *generator, of ...T) T { return of[g.r.IntN(len(of))] }

func (g *generator) chance(p float64) bool { return g.r.Float64() < p }

// resource draws an owner's resource; Deployments are the most important.
func (g *generator) resource() string {
	return pick(g, deployments, deployments, deployments, statefulSets, replicaSets, jobs)
}

func (g *generator) owner() string { return pick(g, "a", "a", "a", "b") }
func (g *generator) pod() string   { return pick(g, "p", "p", "q", "r") }

// any draws a resource with one of its names.
func (g *generator) any() (resource, name string) {
	if g.chance(0.4) {
		return pods, g.pod()
	}
	return g.resource(), g.owner()
}

// value is a text that was not drawn before, or one of few.
func (g *generator) value() string {
	if g.chance(0.3) {
		return pick(g, "", "x", "y")
	}
	g.values++
	return fmt.Sprintf("v%d", g.values)
}

// back is how old what a write builds on is, in versions of the object.
func (g *generator) back() int { return pick(g, 0, 0, 0, 1, 2) }

func (g *generator) manager() string {
	return pick(g, assignment.FieldManager, assignment.FieldManager, "kubectl-edit", "kube-controller-manager")
}

// key draws an annotation's key.
func (g *generator) key() string {
	return pick(g, assignment.Key, assignment.HandoverKey, assignment.PartitionOwnersKey, "example.com/a", "b")
}

// sequence draws a sequence that begins with objects of all kinds, and ends with a look at its watches.
func (g *generator) sequence(length int) []step {
	out := []step{g.create(deployments, "a"), g.create(g.resource(), "a"), g.create(pods, "p"), g.create(pods, "q")}
	draws := []struct {
		weight int
		draw   func() step
	}{
		{6, g.creation}, {7, g.deletion}, {12, g.jsonPatch}, {8, g.mergePatch}, {2, g.scale}, {3, g.apply}, {6, g.statusPatch},
		{6, g.reading}, {14, g.propose}, {12, g.receipt}, {6, g.lease}, {10, g.production}, {6, g.watch}, {5, g.wait},
	}
	total := 0
	for _, d := range draws {
		total += d.weight
	}
	for len(out) < length-1 {
		n := g.r.IntN(total)
		for _, d := range draws {
			if n -= d.weight; n < 0 {
				out = append(out, d.draw())
				break
			}
		}
	}
	return append(out, g.wait())
}

func (g *generator) creation() step { return g.create(g.any()) }

func (g *generator) create(resource, name string) step {
	o := g.manifest(resource, name)
	manager := g.manager()
	return stepf(func(ctx context.Context, s *side) error {
		return s.ask(ctx, http.MethodPost, s.path(resource), by(manager), "application/json", o)
	}, "create %s/%s by %s: %v", resource, name, manager, o[metadata])
}

func (g *generator) get(resource, name string) step {
	return stepf(func(ctx context.Context, s *side) error {
		return s.ask(ctx, http.MethodGet, s.path(resource, name), nil, "", nil)
	}, "get %s/%s", resource, name)
}

func (g *generator) reading() step { return g.get(g.any()) }

func (g *generator) deletion() step {
	resource, name := pods, g.pod()
	if g.chance(0.4) {
		resource, name = g.resource(), g.owner()
	}
	grace := pick(g, -1, -1, 0, 5, 60)
	precondition, back := pick(g, "", "", "uid", "resourceVersion"), g.back()
	return stepf(func(ctx context.Context, s *side) error {
		body := object{"kind": "DeleteOptions", apiVersion: "v1", "propagationPolicy": "Background"}
		if grace >= 0 {
			body["gracePeriodSeconds"] = grace
		}
		if precondition != "" {
			body["preconditions"] = object{precondition: s.meta(resource+"/"+name, back, precondition)}
		}
		return s.ask(ctx, http.MethodDelete, s.path(resource, name), nil, "application/json", body)
	}, "delete %s/%s, grace %d (-1: none), precondition %q of %d versions ago", resource, name, grace, precondition, back)
}

func (g *generator) scale() step {
	resource, name := pick(g, deployments, statefulSets, replicaSets), g.owner()
	g.values++
	n := 3 + g.values // never what it was: see known
	return stepf(func(ctx context.Context, s *side) error {
		return s.ask(ctx, http.MethodPatch, s.path(resource, name, "scale"), by("kubectl-scale"), mergePatch, object{"spec": object{replicas: n}})
	}, "scale %s/%s to %d", resource, name, n)
}

// apply draws a server-side apply of an annotation to an object that exists: on one that does not it would be a
// creation, which the simulation leaves out.
func (g *generator) apply() step {
	resource, name := g.resource(), g.owner()
	g.values++
	key, value := g.applied, fmt.Sprintf("v%d", g.values) // see known
	return stepf(func(ctx context.Context, s *side) error {
		there, err := s.there(ctx, resource, name)
		if err != nil || !there {
			return err
		}
		full := ownerManifest(resource, nil, 0)
		body := object{apiVersion: full[apiVersion], "kind": full["kind"], metadata: object{"name": name, annotations: object{key: value}}}
		query := by("argocd")
		query.Set("force", "true")
		return s.ask(ctx, http.MethodPatch, s.path(resource, name), query, "application/apply-patch+yaml", body)
	}, "apply to %s/%s: %s=%q", resource, name, key, value)
}

// there asks whether an object exists.
func (s *side) there(ctx context.Context, resource, name string) (bool, error) {
	err := s.ask(ctx, http.MethodGet, s.path(resource, name), nil, "", nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log) > 0 && !strings.Contains(s.log[len(s.log)-1], "-> 404"), err
}

func (g *generator) statusPatch() step {
	resource, name := pods, g.pod()
	now := object{"phase": pick(g, "Pending", "Running", "Running", "Succeeded", "Failed")}
	if g.chance(0.3) {
		now["reason"] = "Evicted"
	}
	if g.chance(0.4) {
		n := 1 + g.r.IntN(3)
		resource, name = pick(g, deployments, replicaSets), g.owner()
		now = object{replicas: n, "readyReplicas": n, "availableReplicas": n}
		if resource == deployments {
			now["updatedReplicas"] = n
		}
	}
	return stepf(func(ctx context.Context, s *side) error {
		return s.ask(ctx, http.MethodPatch, s.path(resource, name, status), by("kubelet"), mergePatch, object{status: now})
	}, "status of %s/%s: %v", resource, name, now)
}
