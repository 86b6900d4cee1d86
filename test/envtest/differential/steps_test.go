package differential

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

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
	g := &generator{r: rand.New(rand.NewPCG(seed, number))} //nolint:gosec // it has to be the same again, not secret
	g.applied = pick(g, "example.com/applied", assignment.SealKey)
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
	return pick(g, assignment.SealKey, assignment.DefaultKey, assignment.EpochKey, "example.com/a", "b")
}

// sequence draws a sequence that begins with objects of all kinds, and ends with a look at its watches.
func (g *generator) sequence(length int) []step {
	out := []step{g.create(deployments, "a"), g.create(g.resource(), "a"), g.create(pods, "p"), g.create(pods, "q")}
	draws := []struct {
		weight int
		draw   func() step
	}{
		{6, g.creation}, {7, g.deletion}, {12, g.jsonPatch}, {8, g.mergePatch}, {2, g.scale}, {3, g.apply}, {6, g.statusPatch},
		{3, g.oddPatch}, {6, g.reading}, {6, g.rawList}, {14, g.commit}, {12, g.receipt}, {10, g.production}, {6, g.watch}, {5, g.wait},
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

// manifest draws an object that a real server takes.
func (g *generator) manifest(resource, name string) object {
	meta := object{"name": name}
	if g.chance(0.5) {
		meta[annotations] = object{g.key(): g.value()}
	}
	if g.chance(0.7) || resource == jobs { // a Job without labels gets its template's
		meta["labels"] = object{"app": pick(g, "worker", "other")}
	}
	if resource == pods {
		return g.podManifest(meta)
	}
	return ownerManifest(resource, meta, pick(g, 0, 1, 3))
}

// podManifest makes m one of a pod.
func (g *generator) podManifest(m object) object {
	if g.chance(0.3) {
		m["ownerReferences"] = []any{object{apiVersion: "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u-1", "controller": true}}
	}
	spec := podSpec()
	if g.chance(0.7) {
		spec["nodeName"] = "node"
	}
	return object{apiVersion: "v1", "kind": "Pod", metadata: m, "spec": spec}
}

func podSpec() object {
	return object{
		"containers": []any{object{"name": "c", "image": "i"}}, "terminationGracePeriodSeconds": 30, "automountServiceAccountToken": false,
		"restartPolicy": "Always",
	}
}

func ownerManifest(resource string, meta object, n int) object {
	app := object{"app": "worker"}
	pod := podSpec()
	spec := object{"selector": object{"matchLabels": app}, replicas: n}
	version, kind := "apps/v1", "Deployment"
	switch resource {
	case deployments:
		spec["strategy"] = object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": 1, "maxUnavailable": 0}}
	case statefulSets:
		kind, spec["serviceName"] = "StatefulSet", "s"
	case replicaSets:
		kind = "ReplicaSet"
	case jobs:
		version, kind = "batch/v1", "Job"
		delete(spec, replicas)
		spec["parallelism"], spec["manualSelector"], pod["restartPolicy"] = n, true, "Never"
	}
	spec["template"] = object{metadata: object{"labels": app, annotations: object{"r": "0"}}, "spec": pod}
	return object{apiVersion: version, "kind": kind, metadata: meta, "spec": spec}
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

// op is an operation of a JSON Patch on a side.
type op struct {
	op, path string
	value    func(s *side) any // nil for none
}

func is(v any) func(*side) any { return func(*side) any { return v } }

func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

func (g *generator) jsonPatch() step {
	resource, name := g.any()
	back, manager := g.back(), g.manager()
	ops := make([]op, 0, 4)
	for range g.r.IntN(3) {
		ops = append(ops, g.test(resource+"/"+name, back))
	}
	for range 1 + g.r.IntN(2) {
		ops = append(ops, g.edit(resource))
	}
	about := make([]string, 0, len(ops))
	for _, o := range ops {
		about = append(about, o.op+" "+o.path)
	}
	return stepf(func(ctx context.Context, s *side) error {
		body := make([]any, 0, len(ops))
		for _, o := range ops {
			one := object{"op": o.op, "path": o.path}
			if o.value != nil {
				one["value"] = o.value(s)
			}
			body = append(body, one)
		}
		return s.patch(ctx, resource, name, manager, jsonPatch, body)
	}, "JSON patch %s/%s by %s, tests of %d versions ago: %s", resource, name, manager, back, strings.Join(about, ", "))
}

// test draws a test operation, mostly of what idalloc tests.
func (g *generator) test(key string, back int) op {
	meta := func(field string) op {
		return op{"test", "/metadata/" + field, func(s *side) any { return s.meta(key, back, field) }}
	}
	annotation, moved := g.key(), "generation"
	if strings.HasPrefix(key, pods) {
		moved = "creationTimestamp" // a pod's generation is not simulated
	}
	return pick(g,
		meta("uid"), meta(moved), meta("resourceVersion"), meta("name"),
		op{"test", annotationsPath, is(nil)},
		op{"test", pointer(metadata, annotations, annotation), is(nil)},
		op{"test", pointer(metadata, annotations, annotation), is(g.value())},
		op{"test", "/metadata/labels/app", is(pick(g, "worker", "other"))},
	)
}

// edit draws an operation that changes something.
func (g *generator) edit(resource string) op {
	path := pointer(metadata, annotations, g.key())
	out := []op{
		{"add", path, is(g.value())},
		{"add", path, is(g.value())},
		{"replace", path, is(g.value())},
		{"remove", path, nil},
		{"add", annotationsPath, is(object{g.key(): g.value()})},
		{"add", annotationsPath, is(object{})},
		{"remove", annotationsPath, nil},
		{"add", "/metadata/labels/app", is(pick(g, "worker", "other"))},
	}
	if resource != jobs {
		out = append(out, op{"remove", "/metadata/labels", nil})
	}
	if resource == deployments || resource == statefulSets || resource == replicaSets {
		out = append(out, op{"replace", "/spec/replicas", is(g.r.IntN(4))})
	}
	return pick(g, out...)
}

func (g *generator) mergePatch() step {
	resource, name := g.any()
	manager := g.manager()
	bodies := []object{
		{metadata: object{annotations: object{g.key(): g.value()}}},
		{metadata: object{annotations: object{g.key(): g.value(), g.key(): nil}}},
		{metadata: object{annotations: object{g.key(): nil}}},
		{metadata: object{annotations: nil}},
		{metadata: object{annotations: object{}}},
		{metadata: object{"labels": object{"app": pick(g, "worker", "other")}}},
		{metadata: object{"labels": object{assignment.InstanceIDLabel: pick[any](g, "1", nil)}}},
		{},
	}
	if resource != pods {
		bodies = append(bodies, object{metadata: object{"managedFields": []any{}}}, object{metadata: object{"managedFields": []any{object{}}}})
	}
	switch resource {
	case jobs:
		bodies = append(bodies, object{"spec": object{"parallelism": g.r.IntN(4)}})
	case deployments, statefulSets, replicaSets:
		bodies = append(bodies, object{"spec": object{replicas: g.r.IntN(4)}},
			object{"spec": object{"template": object{metadata: object{annotations: object{"r": g.value()}}}}},
			object{"spec": object{replicas: g.r.IntN(4)}, metadata: object{annotations: object{g.key(): g.value()}}})
	}
	body := pick(g, bodies...)
	return stepf(func(ctx context.Context, s *side) error {
		return s.patch(ctx, resource, name, manager, mergePatch, body)
	}, "merge patch %s/%s by %s: %v", resource, name, manager, body)
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
// creation, which nobody simulates.
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

// oddPatch draws a patch that should be refused, or nearly.
func (g *generator) oddPatch() step {
	resource, name := g.any()
	const limit = 256 * 1024
	content, body := jsonPatch, any(nil)
	about := pick(g, "no JSON", "no patch", "unknown content", "too large", "just fits", "number", "renamed", "nowhere")
	const key = "k"
	switch about {
	case "no JSON":
		body = []byte("[{")
	case "no patch":
		body = []byte(`{"op":"add"}`)
	case "unknown content":
		content, body = "application/xml", []byte("<a/>")
	case "too large":
		body = []any{object{"op": "add", "path": annotationsPath, "value": object{key: strings.Repeat("x", limit)}}}
	case "just fits":
		body = []any{object{"op": "add", "path": annotationsPath, "value": object{key: strings.Repeat("x", limit-len(key))}}}
	case "number":
		content, body = mergePatch, object{metadata: object{annotations: object{key: 1}}}
	case "renamed":
		content, body = mergePatch, object{metadata: object{"name": "renamed"}}
	case "nowhere":
		body = []any{object{"op": "add", "path": "/metadata/none/such", "value": "x"}}
	}
	return stepf(func(ctx context.Context, s *side) error {
		there, err := s.there(ctx, resource, name)
		if err != nil || !there {
			return err // which of two refusals comes first is no matter
		}
		return s.patch(ctx, resource, name, assignment.FieldManager, content, body)
	}, "odd patch of %s/%s: %s", resource, name, about)
}

func (g *generator) rawList() step {
	resource := pods
	if g.chance(0.4) {
		resource = g.resource()
	}
	query := url.Values{}
	if l := pick(g, "", "app=worker", "app in (other)", assignment.InstanceIDLabel, assignment.HoldersSelector("Deployment/a"), "app!=other"); l != "" {
		query.Set("labelSelector", l)
	}
	if resource == pods && g.chance(0.5) {
		query.Set("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")
	} else if g.chance(0.3) {
		query.Set("fieldSelector", "metadata.name="+g.owner())
	}
	from := pick(g, "", "", "0", "known")
	if g.chance(0.5) {
		query.Set("limit", pick(g, "500", "1", "2", "3"))
	}
	match := ""
	if from == "known" {
		match = pick(g, "", "NotOlderThan")
	}
	return stepf(func(ctx context.Context, s *side) error {
		if err := s.fresh(ctx, resource); err != nil {
			return err
		}
		if err := s.ask(ctx, http.MethodGet, s.path(resource), s.from(query, from, match), "", nil); err != nil || from != "" || query.Get("limit") == "" {
			return err
		}
		return s.pages(ctx, resource, query)
	}, "list %s %v from %q %s, and all pages from \"\"", resource, query, from, match)
}

// pages notes what all pages of a list show together: where a page ends is the server's affair.
func (s *side) pages(ctx context.Context, resource string, query url.Values) error {
	query = maps.Clone(query)
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return err
	}
	for {
		req, err := http.NewRequestWithContext(context.WithValue(ctx, quietly, true), http.MethodGet, s.host+s.path(resource)+"?"+query.Encode(), http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := s.client.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return err
		}
		var list struct {
			Metadata struct{ Continue string } `json:"metadata"`
			Items    []object                  `json:"items"`
		}
		if err := utiljson.Unmarshal(body, &list); err != nil {
			return err
		}
		if len(list.Items) > limit {
			s.notef("a page of %d objects", len(list.Items))
		}
		s.mu.Lock()
		views := make([]string, 0, len(list.Items))
		for _, o := range list.Items {
			s.seen(resource, o)
			views = append(views, s.view(resource, o, true))
		}
		s.mu.Unlock()
		for _, v := range views {
			s.notef("%d: page shows %s", resp.StatusCode, v)
		}
		if list.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// from returns the query with a resourceVersion: none, 0, or the newest that is known.
func (s *side) from(query url.Values, from, match string) url.Values {
	out := url.Values{}
	maps.Copy(out, query)
	switch from {
	case "":
	case "known":
		s.mu.Lock()
		defer s.mu.Unlock()
		out.Set("resourceVersion", "0")
		if len(s.revs) > 0 {
			out.Set("resourceVersion", strconv.FormatInt(s.revs[len(s.revs)-1], 10))
		}
		if match != "" {
			out.Set("resourceVersionMatch", match)
		}
	default:
		out.Set("resourceVersion", from)
	}
	return out
}
