package workload_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/placement"
)

type object = map[string]any

const (
	version = "apiVersion"
	status  = "status"
)

// server has a Deployment of four replicas. The test changes what it answers before it reads.
type server struct {
	status   object
	joining  bool // id 3 has a pod and is no member
	managers []any
	pods     []any
	lists    int  // how often pods were listed
	denied   bool // listing pods is forbidden
	deleted  bool // the Deployment is Terminating
	replicas int  // 0 stands for 4
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer object
	switch {
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		answer = s.deployment()
	case s.denied:
		w.WriteHeader(http.StatusForbidden)
		answer = object{"kind": "Status", status: "Failure", "code": http.StatusForbidden, "reason": "Forbidden", "message": `pods is forbidden: User "autoscaler" cannot list resource "pods" in API group "" in the namespace "demo"`}
	default:
		s.lists++
		answer = object{version: "v1", "kind": "PodList", "items": s.pods}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (s *server) deployment() object {
	row := assignment.Row{Count: 4, Strategy: placement.NameExternal, Owners: placement.Owners{0: placement.Between(0, 3), 1: {}, 2: {}, 3: {}}}
	state := assignment.State{Slots: assignment.Slots{0: "a", 1: "b", 2: "c"}, Row: &row}
	if s.joining {
		delete(row.Owners, 3)
		state.Slots[3] = "d"
	}
	annotations := state.Encode()
	annotations[assignment.PartitionCountKey], annotations[assignment.PartitionStrategyKey] = "4", placement.NameExternal
	metadata := object{"name": "worker", "namespace": "demo", "uid": "u", "resourceVersion": "1", "annotations": annotations, "managedFields": s.managers}
	if s.deleted {
		metadata["deletionTimestamp"] = "2026-11-23T00:00:00Z"
	}
	return object{
		version: "apps/v1", "kind": "Deployment", "metadata": metadata,
		"spec": object{"replicas": cmp.Or(s.replicas, 4), "selector": object{"matchLabels": object{"app": "worker"}}},
		status: s.status,
	}
}

// pod returns a pod with this condition Ready.
func pod(name, ready string) object {
	return object{
		version: "v1", "kind": "Pod", "metadata": object{"name": name},
		status: object{"conditions": []any{object{"type": "Initialized", status: "True"}, object{"type": "Ready", status: ready}}},
	}
}

func (s *server) read(t *testing.T) (workload.Moment, error) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	st, err := store.New(&rest.Config{Host: web.URL}, clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := kinds.ParseRef("deployment/worker", "demo")
	if err != nil {
		t.Fatal(err)
	}
	return workload.Workload{Store: st, Ref: ref}.Read(t.Context())
}

func TestPodsThatCannotWorkAreNamed(t *testing.T) {
	leaving := pod("b", "True")
	leaving["metadata"] = object{"name": "b", "deletionTimestamp": "2026-11-23T00:00:00Z"}
	s := &server{pods: []any{pod("a", "True"), leaving, pod("other", "True")}}
	m, err := s.read(t)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{0: "", 1: "its pod b is being deleted", 2: "its pod c is gone", 3: "no pod has it"} {
		if got := m.Absent[id]; got != want {
			t.Errorf("id %d: %q, want %q", id, got, want)
		}
	}
	s.pods = []any{pod("a", "False"), pod("b", "Unknown"), object{version: "v1", "kind": "Pod", "metadata": object{"name": "c"}}}
	if m, err = s.read(t); err != nil {
		t.Fatal(err)
	}
	for id, name := range []string{"a", "b", "c"} {
		if want := "its pod " + name + " is not Ready"; m.Absent[id] != want {
			t.Errorf("id %d: %q, want %q", id, m.Absent[id], want)
		}
	}
}

// quiet is the status of an owner with four pods, all of them Ready.
func quiet() object {
	return object{"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4}
}

// Only a status that leaves no doubt saves the list. In all the others a pod without an id may be one of those that are Ready.
func TestPodsAreListedUnlessAllAreReadyAndNoOtherIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		field string
		value int
		lists int
	}{
		"all are Ready":         {"unavailableReplicas", 0, 0},
		"one is not Ready":      {"readyReplicas", 3, 1},
		"one more has come":     {"replicas", 5, 1},
		"one is of before":      {"updatedReplicas", 3, 1},
		"one is being deleted":  {"terminatingReplicas", 1, 1},
		"the status is not new": {"replicas", 2, 1},
	} {
		s := &server{status: quiet()}
		s.status[c.field] = c.value
		m, err := s.read(t)
		if err != nil || s.lists != c.lists || (len(m.Absent) > 0) != (c.lists > 0) {
			t.Errorf("%s: %v, %v, %d lists, want %d", name, m.Absent, err, s.lists, c.lists)
		}
	}
	s := &server{denied: true}
	_, err := s.read(t)
	if forbidden := (*request.ForbiddenError)(nil); !errors.As(err, &forbidden) || !strings.Contains(err.Error(), `verb "list" on resource "pods"`) {
		t.Errorf("%v", err)
	}
}

func TestAPodThatRunsAndIsNotReadyIsToldFromOneThatIsLost(t *testing.T) {
	with := func(name, containersReady, state string) object {
		p := pod(name, "False")
		said, ok := p[status].(object)
		if !ok {
			t.Fatal("a pod has a status")
		}
		said["conditions"] = []any{object{"type": "Ready", status: "False"}, object{"type": "ContainersReady", status: containersReady}}
		said["containerStatuses"] = []any{object{"name": "main", "state": object{state: object{}}}}
		return p
	}
	// The readiness probe of a fails. The node of b is lost: its kubelet says nothing any more. c crashes again and again.
	s := &server{pods: []any{with("a", "False", "running"), with("b", "True", "running"), with("c", "False", "waiting")}}
	m, err := s.read(t)
	if err != nil || len(m.Absent) != 4 || len(m.Unready) != 1 || !m.Unready[0] {
		t.Errorf("absent %v, of these unready %v; %v", m.Absent, m.Unready, err)
	}
}

func TestAnIDThatIsPausedIsNamed(t *testing.T) {
	for of, want := range map[int]string{0: "its pod d is paused, or does not work on partitions", 4: ""} {
		text := receipt.Receipt{UID: "d", Owner: "Deployment/worker", State: receipt.Locks, Share: receipt.Share{ID: 3, Of: of}, Write: "1"}.Encode()
		d := pod("d", "True")
		d["metadata"] = object{"name": "d", "uid": "d", "annotations": object{receipt.Key: text}}
		s := &server{status: quiet(), joining: true, pods: []any{pod("a", "True"), pod("b", "True"), pod("c", "True"), d}}
		m, err := s.read(t)
		if _, member := m.Row[3]; err != nil || m.Absent[3] != want || member {
			t.Errorf("%v, %v, row %v; want %q", m.Absent, err, m.Row, want)
		}
	}
}

func TestAnOwnerThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	s := &server{status: quiet(), deleted: true}
	if m, err := s.read(t); err != nil || m.Trouble != "Deployment/worker is being deleted" || s.lists > 0 {
		t.Errorf("%q, %v", m.Trouble, err)
	}
}

// Nothing is kept of pods that can have no partition, and the number can still be corrected.
func TestANumberOfPodsByMistakeCostsNoMemory(t *testing.T) {
	m, err := (&server{status: quiet(), replicas: 1_000_000}).read(t)
	if err != nil || !strings.Contains(m.Trouble, "has 1000000 replicas") || m.Count != placement.MaxCount || len(m.Absent) > placement.MaxCount {
		t.Errorf("%d pods, of which %d are absent, %q, %v", m.Count, len(m.Absent), m.Trouble, err)
	}
}

func TestWhoWroteTheTargetIsKnown(t *testing.T) {
	wrote := func(manager, key string) object {
		return object{
			"manager": manager, "operation": "Update", version: "apps/v1", "time": "2026-11-23T00:00:00Z", "fieldsType": "FieldsV1",
			"fieldsV1": object{"f:metadata": object{"f:annotations": object{"f:" + key: object{}}}},
		}
	}
	target := assignment.PartitionTargetKey
	for name, c := range map[string]struct {
		managers []any
		want     string
	}{
		"no manager":                          {nil, ""},
		"an autoscaler":                       {[]any{wrote("kubectl", "example.com/note"), wrote(workload.FieldManager, target)}, ""},
		"an undone rollout":                   {[]any{wrote(workload.FieldManager, "example.com/note"), wrote("kubectl-rollout", target)}, `field manager "kubectl-rollout"`},
		"both, with the same":                 {[]any{wrote("helm", target), wrote(workload.FieldManager, target)}, ""},
		"an API server that has forgotten it": {[]any{wrote("ancient-changes", target)}, ""},
		"an API server that never knew it":    {[]any{wrote("before-first-apply", target)}, ""},
	} {
		m, err := (&server{status: quiet(), managers: c.managers}).read(t)
		if err != nil || m.Foreign != c.want {
			t.Errorf("%s: %q, %v; want %q", name, m.Foreign, err, c.want)
		}
	}
}

func TestWhoScaledLastIsKnownAndWhen(t *testing.T) {
	wrote := func(manager, at, subresource string, fields object) object {
		entry := object{"manager": manager, "operation": "Update", version: "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource}
		if at != "" {
			entry["time"] = at
		}
		return entry
	}
	replicas := object{"f:spec": object{"f:replicas": object{}}}
	ours, hand := wrote(workload.FieldManager, "", "scale", replicas), wrote("kubectl", "", "scale", replicas) // as the API server has it, without a time
	followed := wrote("kube-controller-manager", "2026-11-23T00:00:05Z", "status", object{"f:status": object{"f:replicas": object{}}})
	forgotten := wrote("ancient-changes", "2026-11-23T00:00:09Z", "", replicas)
	for name, c := range map[string]struct {
		managers []any
		who, at  string
	}{
		"no manager":                           {[]any{followed}, "", ""},
		"an autoscaler":                        {[]any{ours, followed, forgotten}, workload.FieldManager, "2026-11-23T00:00:05Z"},
		"a hand":                               {[]any{hand, followed}, "kubectl", "2026-11-23T00:00:05Z"},
		"an autoscaler, not carried out":       {[]any{ours}, workload.FieldManager, ""},
		"a tool that applies the whole object": {[]any{followed, wrote("argocd-controller", "2026-11-23T00:00:09Z", "", replicas)}, "argocd-controller", ""},
	} {
		m, err := (&server{status: quiet(), managers: c.managers}).read(t)
		at := ""
		if !m.Scaled.IsZero() {
			at = m.Scaled.UTC().Format(time.RFC3339)
		}
		if err != nil || m.Scaler != c.who || at != c.at || m.Ours != (c.who == workload.FieldManager) {
			t.Errorf("%s: %q at %q, %v; want %q at %q", name, m.Scaler, at, err, c.who, c.at)
		}
	}
}
