package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/rollout"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// testTime is the time of all tests here.
var testTime = time.UnixMilli(1795219200123) //nolint:gochecknoglobals // a constant that Go cannot express

// rawDeployment is a Deployment of n assigned pods as an API server sends it. revision makes it differ
// from others in its status.
func rawDeployment(tb testing.TB, n, revision int) []byte {
	tb.Helper()
	const uid = "0b7d7f3e-7f1c-4a57-9f6e-3ad9f64cf7a7"
	state := assignment.State{Slots: assignment.Slots{}}
	for i := range n {
		state.Slots[i] = fmt.Sprintf("worker-7c6b5d9f8-%05d", i)
	}
	annotations := state.Encode()
	annotations["deployment.kubernetes.io/revision"] = "3"
	metadata := map[string]any{
		"name": testName, "namespace": "default", "uid": uid,
		"resourceVersion": strconv.Itoa(1000 + revision), "generation": 7, "creationTimestamp": "2026-11-20T10:00:00Z",
		"annotations": annotations, "labels": map[string]string{"app": testName},
		"managedFields": []any{
			map[string]any{
				"manager": assignment.FieldManager, "operation": "Update", apiVersionField: testAPIVersion, "time": "2026-11-20T10:00:01Z",
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{
					"f:" + assignment.Key: struct{}{}}}},
			},
			map[string]any{
				"manager": "kubectl", "operation": "Update", apiVersionField: testAPIVersion, "time": "2026-11-20T10:00:00Z",
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": struct{}{}}},
			},
		},
	}
	b, err := json.Marshal(map[string]any{
		apiVersionField: testAPIVersion, "kind": "Deployment", metadataField: metadata,
		"spec": map[string]any{
			"replicas": n, "selector": map[string]any{"matchLabels": map[string]string{"app": testName}},
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "10%", "maxUnavailable": 2}},
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "worker:1"}}}},
		},
		"status": map[string]any{"replicas": n + 5, "updatedReplicas": n, "readyReplicas": revision, "availableReplicas": revision},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func testRef() kinds.Ref {
	return kinds.Ref{APIVersion: testAPIVersion, Kind: kinds.Deployment, Namespace: "default", Name: testName}
}

func decodeObject(tb testing.TB, raw []byte) *wire.Object {
	tb.Helper()
	object := &wire.Object{}
	if err := json.Unmarshal(raw, object); err != nil {
		tb.Fatal(err)
	}
	return object
}

func TestDecodeOwnerReadsWhatItNeeds(t *testing.T) {
	object := decodeObject(t, rawDeployment(t, 20, 5))
	owner, err := DecodeOwner(testRef(), object, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := rollout.View{Revision: "3", MaxUnavailable: 2, MaxSurge: 2, Progress: rollout.Progress{Replicas: 25, Updated: 20, Ready: 5, Available: 5}}
	if owner.Rollout != want {
		t.Errorf("rollout %+v, want %+v", owner.Rollout, want)
	}
	if owner.Count != 20 || owner.Selector != "app=worker" || owner.Generation != 7 || owner.ResourceVersion != "1005" || owner.Terminating {
		t.Errorf("%+v", owner)
	}
	if id, ok := owner.Record.State.Slots.Of("worker-7c6b5d9f8-00007"); !ok || id != 7 {
		t.Errorf("slot %d, %t, want 7", id, ok)
	}
	if again := object.DeepCopyObject(); !reflect.DeepEqual(again, object) {
		t.Errorf("a copy is %+v, want %+v", again, object)
	}
}

func TestDecodeOwnerDefaults(t *testing.T) {
	selector := `"selector":{"matchLabels":{"a":"b"}}`
	for name, tc := range map[string]struct {
		kind, spec string
		count      int
		start      int
		rollout    rollout.View
	}{
		"no replicas":      {kinds.Deployment, `{` + selector + `}`, 1, 0, rollout.View{MaxUnavailable: 0, MaxSurge: 1, BlocksBelow: 4}},
		"zero replicas":    {kinds.Deployment, `{"replicas":0,` + selector + `}`, 0, 0, rollout.View{MaxUnavailable: 1, BlocksBelow: 4}},
		"a third":          {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":"33%"}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 1, MaxSurge: 1, BlocksBelow: 4}},
		"a half":           {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"50%"}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 2, MaxSurge: 1, BlocksBelow: 2}},
		"all":              {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"100%"}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 4, MaxSurge: 1}},
		"a number":         {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":0}},` + selector + `}`, 4, 0, rollout.View{MaxSurge: 1}},
		"no surge":         {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxSurge":0}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 1}},
		"no percent":       {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"0%"}},` + selector + `}`, 4, 0, rollout.View{MaxSurge: 1}},
		"two, no surge":    {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":2}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 2}},
		"one percent":      {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"1%"}},` + selector + `}`, 4, 0, rollout.View{MaxSurge: 1, BlocksBelow: 100}},
		"Recreate":         {kinds.Deployment, `{"replicas":4,"strategy":{"type":"Recreate"},` + selector + `}`, 4, 0, rollout.View{Recreate: true}},
		"no surge at all":  {kinds.Deployment, `{"replicas":4,"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}},` + selector + `}`, 4, 0, rollout.View{MaxUnavailable: 1}},
		"first ordinal":    {kinds.StatefulSet, `{"replicas":3,"ordinals":{"start":5},` + selector + `}`, 3, 5, rollout.View{}},
		"parallelism":      {kinds.Job, `{"parallelism":6,"replicas":9,` + selector + `}`, 6, 0, rollout.View{}},
		"null parallelism": {kinds.Job, `{"parallelism":null,` + selector + `}`, 1, 0, rollout.View{}},
	} {
		t.Run(name, func(t *testing.T) {
			object := decodeObject(t, []byte(`{"kind":"`+tc.kind+`","metadata":{"name":"worker"},"spec":`+tc.spec+`}`))
			owner, err := DecodeOwner(refOf(t, tc.kind), object, nil)
			if err != nil || owner.Count != tc.count || owner.OrdinalStart != tc.start || owner.Rollout != tc.rollout || owner.Annotations != nil {
				t.Errorf("%+v, %v", owner, err)
			}
		})
	}
	for name, spec := range map[string]string{"no selector": `{}`, "an empty one": `{"selector":{}}`} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeOwner(testRef(), decodeObject(t, []byte(`{"spec":`+spec+`}`)), nil); err == nil {
				t.Error("an owner whose selector matches every pod was accepted")
			}
		})
	}
}

// What an earlier moment said is used again only while it would be read the same.
func TestDecodeOwnerAfterAnEarlierMoment(t *testing.T) {
	decode := func(object *wire.Object, earlier *Owner) Owner {
		t.Helper()
		owner, err := DecodeOwner(testRef(), object, earlier)
		if err != nil {
			t.Fatal(err)
		}
		return owner
	}
	first := decode(decodeObject(t, rawDeployment(t, 20, 1)), nil)
	for name, change := range map[string]func(o *wire.Object){
		"the status changed":         func(*wire.Object) {},
		"another annotation changed": func(o *wire.Object) { o.Annotations["x"] = "y" },
		"the assignment changed":     func(o *wire.Object) { o.Annotations[assignment.Key] = `{"0":"x"}` },
		"the owner is another one":   func(o *wire.Object) { o.UID = "another" },
		"a request came":             func(o *wire.Object) { o.Annotations[assignment.HandoverKey] = `{"0":"x"}` },
		"a row came":                 func(o *wire.Object) { o.Annotations[assignment.PartitionOwnersKey] = "x" },
		"the assignment is gone":     func(o *wire.Object) { delete(o.Annotations, assignment.Key) },
		"all annotations are gone":   func(o *wire.Object) { o.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			object := decodeObject(t, rawDeployment(t, 20, 2))
			change(object)
			other, ok := object.DeepCopyObject().(*wire.Object)
			if !ok {
				t.Fatal("a copy is of another type")
			}
			got, want := decode(object, &first), decode(other, nil)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("after an earlier moment\n%+v\nwithout it\n%+v", got, want)
			}
		})
	}
}

// again gives the same bytes for ever.
type again struct {
	bytes.Reader
	all []byte
}

func (a *again) Read(p []byte) (int, error) {
	if a.Len() == 0 {
		a.Reset(a.all)
	}
	return a.Reader.Read(p)
}

func (*again) Close() error { return nil }

// events returns a function that takes in the next event of an owner with n pods, by the decoders of
// a watch. The assignment is the same at every event or, with moves, another one.
func events(tb testing.TB, n int, moves bool) (next func() Owner) {
	tb.Helper()
	var all bytes.Buffer
	for revision := range 2 {
		raw := rawDeployment(tb, n, revision)
		if moves && revision == 1 {
			raw = bytes.ReplaceAll(raw, []byte("worker-7c6b5d9f8-00000"), []byte("worker-7c6b5d9f8-99999"))
		}
		if err := json.NewEncoder(&all).Encode(metav1.WatchEvent{Type: string(apiwatch.Modified), Object: runtime.RawExtension{Raw: raw}}); err != nil {
			tb.Fatal(err)
		}
	}
	info := wire.Negotiated().SupportedMediaTypes()[0]
	var body io.ReadCloser = &again{all: all.Bytes()}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(info.StreamSerializer.NewFrameReader(body), info.StreamSerializer.Serializer), info.Serializer)
	var earlier *Owner
	return func() Owner {
		_, decoded, err := decoder.Decode()
		if err != nil {
			tb.Fatal(err)
		}
		object, ok := decoded.(*wire.Object)
		if !ok {
			tb.Fatalf("an event of %T", decoded)
		}
		owner, err := DecodeOwner(testRef(), object, earlier)
		if err != nil {
			tb.Fatal(err)
		}
		earlier = &owner
		return owner
	}
}

// An event costs allocations for the owner, not for its pods: one for each would be a thousand here.
// Measured: 131 and 152.
func TestAnEventAllocatesLittle(t *testing.T) {
	const pods = 1000
	for _, tc := range []struct {
		name  string
		moves bool
		most  float64
	}{{"status", false, 250}, {"assignment", true, 300}} {
		t.Run(tc.name, func(t *testing.T) {
			next := events(t, pods, tc.moves)
			if owner := next(); owner.Count != pods {
				t.Fatalf("count %d, want %d", owner.Count, pods)
			}
			if got := testing.AllocsPerRun(10, func() { next() }); got > tc.most {
				t.Errorf("an event of an owner with %d pods makes %.0f allocations, more than %.0f", pods, got, tc.most)
			}
		})
	}
}
