package observe_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/observe"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// audit writes events as the API server does.
type audit struct {
	strings.Builder

	version int
}

func (a *audit) event(verb, user, pod string, request, response any) {
	extra := map[string][]string{}
	if pod != "" {
		extra["authentication.kubernetes.io/pod-uid"] = []string{pod + "-uid"}
	}
	b, err := json.Marshal(map[string]any{
		"stage": "ResponseComplete", "verb": verb, "user": map[string]any{"username": user, "extra": extra}, "objectRef": map[string]any{"resource": "pods"},
		"responseStatus": map[string]any{"code": 200}, "requestObject": request, "responseObject": response,
	})
	if err != nil {
		panic(err)
	}
	_, _ = a.WriteString(string(b) + "\n") // a Builder never fails
}

// stored is pod a as the answer to a write shows it.
func (a *audit) stored(text string) map[string]any {
	a.version++
	labels := map[string]string{}
	if strings.Contains(text, `"id"`) {
		labels = map[string]string{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: "3"}
	}
	return map[string]any{"metadata": map[string]any{
		"namespace": "prod", "name": "a", "uid": "a-uid", "resourceVersion": strconv.Itoa(a.version), "labels": labels, "annotations": map[string]string{receipt.Key: text},
	}}
}

// writes has a process of pod a write its receipt.
func (a *audit) writes(before, text string) {
	const path = "/metadata/annotations/idalloc.dev~1receipt"
	patch := []map[string]any{{"op": "test", "path": path, "value": before}, {"op": "add", "path": path, "value": text}}
	a.event("patch", "system:serviceaccount:prod:worker", "a", patch, a.stored(text))
}

func (a *audit) lists(items ...any) {
	a.event("list", "system:serviceaccount:prod:worker", "a", nil, map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items})
}

func TestAnAuditLogAccuses(t *testing.T) {
	lock, note := says("a", "l", `"id":3,`), says("a", "n", `"id":3,"token":1,`)
	for name, h := range map[string]struct {
		play func(a *audit)
		want []string
	}{
		"a take": {func(a *audit) {
			a.writes("", lock)
			a.lists(a.stored(lock))
			a.writes(lock, note)
		}, nil},
		"no list": {func(a *audit) {
			a.writes("", lock)
			a.writes(lock, note)
		}, []string{"it notes what it holds"}},
		"another writer removes a lock": {func(a *audit) {
			a.writes("", lock)
			a.lists(a.stored(lock))
			a.writes(lock, note)
			a.event("patch", "admin", "", map[string]any{}, a.stored(""))
		}, []string{"A3: the work stays locked, and it notes no more"}},
		"a write that tests nothing": {func(a *audit) {
			a.writes("", lock)
			text := says("a", "g", `"gaveUp":true,`)
			a.event("patch", "system:serviceaccount:prod:worker", "a", map[string]any{"metadata": map[string]any{"annotations": map[string]any{receipt.Key: text}}}, a.stored(text))
		}, []string{"a write"}},
	} {
		t.Run(name, func(t *testing.T) {
			var a audit
			h.play(&a)
			c := newCluster(observe.Accusation)
			if err := observe.Audit(strings.NewReader(a.String()), c.Observer); err != nil {
				t.Fatal(err)
			}
			if rules := c.rules(); !slices.Equal(rules, h.want) {
				t.Errorf("got %q, want %q", rules, h.want)
			}
		})
	}
}
