package differential

import (
	"context"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

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
		{metadata: object{"labels": object{receipt.IDLabel: pick[any](g, "1", nil)}}},
		{},
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
