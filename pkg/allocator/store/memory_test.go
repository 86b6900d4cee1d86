package store

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The API server forgets who wrote the seal when more than ten managers make updates.
func TestAncientMaps(t *testing.T) {
	const merged = "ancient-changes"
	type seen struct {
		manager    string
		epoch      int64
		generation int64
		uid        string
	}
	first := seen{assignment.FieldManager, 5, 7, "o"}
	for name, tc := range map[string]struct {
		kind   string
		before []seen
		now    seen
		clean  bool
	}{
		"that this process saw clean are clean":      {Deployment, []seen{first}, seen{merged, 5, 7, "o"}, true},
		"that it never saw are not":                  {Deployment, nil, seen{merged, 5, 7, "o"}, false},
		"of another seal are not":                    {Deployment, []seen{first}, seen{merged, 4, 7, "o"}, false},
		"of a later generation may be brought back":  {Deployment, []seen{first}, seen{merged, 5, 8, "o"}, false},
		"of another owner are not":                   {Deployment, []seen{first}, seen{merged, 5, 7, "new"}, false},
		"that are older than the last are not":       {Deployment, []seen{first, {assignment.FieldManager, 6, 8, "o"}}, seen{merged, 5, 7, "o"}, false},
		"are known though an old moment comes late":  {Deployment, []seen{{assignment.FieldManager, 6, 8, "o"}, first}, seen{merged, 6, 8, "o"}, true},
		"of an owner that was made again are known":  {Deployment, []seen{first, {assignment.FieldManager, 2, 1, "new"}}, seen{merged, 2, 1, "new"}, true},
		"of kinds whose generation says nothing":     {StatefulSet, []seen{first}, seen{merged, 5, 7, "o"}, false},
		"are no others that somebody else has":       {Deployment, []seen{first}, seen{"kubectl", 5, 7, "o"}, false},
		"are not where nobody has the seal any more": {Deployment, []seen{first}, seen{"", 5, 7, "o"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Key: assignment.DefaultKey, Clock: testclock.NewFakeClock(testTime)}
			ref, one := Ref{Kind: tc.kind, Name: testName}, 1
			decode := func(m seen) Owner {
				state := assignment.State{Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "0b7d7f3e"}, Epoch: m.epoch}
				object := &Object{
					ObjectMeta: metav1.ObjectMeta{UID: "o", Generation: m.generation, Annotations: state.Encode(s.Key, m.uid)},
					Spec:       spec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
				}
				object.UID = types.UID(m.uid)
				if m.manager != "" {
					object.ManagedFields = []metav1.ManagedFieldsEntry{{
						Manager: m.manager, Operation: metav1.ManagedFieldsOperationUpdate,
						FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + assignment.SealKey + `":{}}}}`),
					}}
				}
				o, err := s.Decode(ref, object, nil)
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			for _, m := range tc.before {
				if !decode(m).Clean() {
					t.Fatalf("%+v is not clean", m)
				}
			}
			if o := decode(tc.now); o.Clean() != tc.clean || o.Ancient != (tc.now.manager == merged) || (o.Trust == assignment.Untracked) != (tc.now.manager == "") {
				t.Errorf("trust is %s, ancient %t", o.Trust, o.Ancient)
			}
		})
	}
}

// The answer to a write of this process may say already that the server forgot who wrote it.
func TestWhatThisProcessWroteIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		kind           string
		ancient, known bool
	}{
		"a Deployment":                      {Deployment, true, true},
		"a kind whose generation is silent": {StatefulSet, true, false},
		"one that somebody else has":        {Deployment, false, false},
	} {
		var m memory
		answer := Owner{
			Ref: Ref{Kind: tc.kind, Name: testName}, UID: "o", Generation: 7, Ancient: tc.ancient, Annotations: map[string]string{assignment.SealKey: "1:7:x"},
		}
		event := answer
		m.wrote(&answer)
		if m.vouch(&event); answer.Clean() != tc.known || event.Clean() != tc.known {
			t.Errorf("%s: its answer is known: %t, what a watch says of it: %t, want %t", name, answer.Clean(), event.Clean(), tc.known)
		}
	}
}
