package store

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

const (
	ancientManager = "ancient-changes"
	labelsOfA      = `"selector":{"matchLabels":{"app":"a"}}`
)

// wrote is a managedFields entry of an update, or of what operation says, of these annotations.
func wrote(manager string, operation metav1.ManagedFieldsOperationType, keys ...string) metav1.ManagedFieldsEntry {
	fields := make([]string, 0, len(keys))
	for _, k := range keys {
		fields = append(fields, `"f:`+k+`":{}`)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{` + strings.Join(fields, ",") + `}}}`),
	}
}

func TestWhoWroteTheSeal(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	const seal = assignment.SealKey
	sub := wrote(assignment.FieldManager, update, seal)
	sub.Subresource = "status"
	broken := wrote("kubectl", update, seal)
	broken.FieldsV1 = metav1.NewFieldsV1(`[]`)
	for name, tc := range map[string]struct {
		fields              []metav1.ManagedFieldsEntry
		us, nobody, ancient bool
	}{
		"nobody":                            {nil, false, true, false},
		"somebody wrote something else":     {[]metav1.ManagedFieldsEntry{wrote("kubectl", update, "team")}, false, true, false},
		"idalloc":                           {[]metav1.ManagedFieldsEntry{wrote(assignment.FieldManager, update, seal)}, true, false, false},
		"idalloc, and others the same":      {[]metav1.ManagedFieldsEntry{wrote(assignment.FieldManager, update, seal), wrote("argocd", apply, seal)}, true, false, false},
		"somebody who applies as idalloc":   {[]metav1.ManagedFieldsEntry{wrote(assignment.FieldManager, apply, seal)}, false, false, false},
		"a subresource, as idalloc":         {[]metav1.ManagedFieldsEntry{sub}, false, false, false},
		"an entry without fields":           {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: update}}, false, true, false},
		"an entry of another form":          {[]metav1.ManagedFieldsEntry{broken}, false, true, false},
		"somebody else":                     {[]metav1.ManagedFieldsEntry{wrote("kubectl", update, seal)}, false, false, false},
		"the server forgot who":             {[]metav1.ManagedFieldsEntry{wrote(ancientManager, update, seal)}, false, false, true},
		"somebody who calls himself that":   {[]metav1.ManagedFieldsEntry{wrote(ancientManager, apply, seal)}, false, false, false},
		"somebody, and the server forgot":   {[]metav1.ManagedFieldsEntry{wrote("kubectl", apply, seal), wrote(ancientManager, update, seal)}, false, false, false},
		"the server forgot, and somebody":   {[]metav1.ManagedFieldsEntry{wrote(ancientManager, update, seal), wrote("kubectl", apply, seal)}, false, false, false},
		"the server forgot something else ": {[]metav1.ManagedFieldsEntry{wrote(ancientManager, update, "team")}, false, true, false},
	} {
		if us, nobody, ancient := tracked(tc.fields, assignment.SealKey); us != tc.us || nobody != tc.nobody || ancient != tc.ancient {
			t.Errorf("%s: us %t, nobody %t, ancient %t", name, us, nobody, ancient)
		}
		if o := (&Object{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.fields}}); o.Tracked() != tc.us {
			t.Errorf("%s: tracked %t", name, !tc.us)
		}
	}
}

func ownerOf(t *testing.T, s assignment.State, change map[string]string, fields ...metav1.ManagedFieldsEntry) Owner {
	t.Helper()
	object := decodeObject(t, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"o"},"spec":{`+labelsOfA+`}}`))
	object.Annotations = s.Encode(assignment.DefaultKey, "o")
	maps.Copy(object.Annotations, change)
	object.ManagedFields = fields
	o, err := DecodeOwner(testRef(), object, assignment.DefaultKey, testTime, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatIsToldOfAMapThatIsNotClean(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	s := assignment.State{Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}, FenceAfter: time.Second, Epoch: testTime.UnixMilli() + 1}
	ours := wrote(assignment.FieldManager, update, assignment.SealKey, assignment.FenceAfterKey)
	edited := map[string]string{assignment.DefaultKey: `{"0":"b"}`}
	kubectl := wrote("kubectl", update, assignment.DefaultKey)
	if o := ownerOf(t, s, nil, ours); !o.Clean() || o.FenceOurs || o.Writers != nil || o.Horizon(testTime).Before(time.UnixMilli(s.Epoch)) {
		t.Errorf("a clean one: %+v", o)
	}
	if o := ownerOf(t, s, nil, ours); !o.Horizon(testTime.Add(time.Hour)).Equal(testTime.Add(time.Hour)) {
		t.Error("a clean epoch of before now hides what is between")
	}
	if o := ownerOf(t, s, edited, ours, kubectl); o.Clean() || !o.FenceOurs || len(o.Writers) != 1 || !o.Horizon(testTime).Equal(testTime) {
		t.Errorf("one that kubectl edited: %+v", o)
	}
	if o := ownerOf(t, s, edited, wrote(ancientManager, update, assignment.SealKey), kubectl); o.Ancient || len(o.Writers) == 0 {
		t.Errorf("one whose seal does not fit is not only forgotten: %+v", o)
	}
	if o := ownerOf(t, s, nil, wrote(ancientManager, update, assignment.SealKey), kubectl); !o.Ancient || o.Writers != nil {
		t.Errorf("one whose writer the server forgot has no other: %+v", o)
	}
}

func TestASlotIsThatOfOnePod(t *testing.T) {
	o := ownerOf(t, assignment.State{Slots: assignment.Slots{0: "a", 1: "b"}, UIDs: assignment.Slots{0: "u", 1: "u"}, Epoch: 7}, nil)
	for name, tc := range map[string]struct {
		id       int
		pod, uid string
		want     bool
	}{
		"its holder":              {0, "a", "u", true},
		"one with its short UID":  {0, "b", "u", false},
		"a successor of its name": {0, "a", "v", false},
		"a slot of nobody":        {2, "a", "u", false},
	} {
		if o.Names(tc.id, tc.pod, types.UID(tc.uid)) != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
	}
}

// What an event says of annotations is not read again if it is what is known.
func TestTheSameAnnotationsAreReadOnce(t *testing.T) {
	s := assignment.State{Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}, Epoch: testTime.UnixMilli()}
	strict := s
	strict.Quarantine = assignment.Quarantine{{From: 3, To: 3, Epoch: 5}}
	known := ownerOf(t, s, nil)
	const other = "team.example/ids"
	elsewhere := ownerOf(t, assignment.State{}, assignment.State{Epoch: s.Epoch}.Encode(other, "o"))
	for name, tc := range map[string]struct {
		known  Owner
		change map[string]string
		now    time.Time
		want   bool
	}{
		"the same":                              {known, nil, testTime, true},
		"something else was added":              {known, map[string]string{"team": "x"}, testTime, true},
		"the map was edited":                    {known, map[string]string{assignment.DefaultKey: "{}"}, testTime, false},
		"a key of ours was added, though empty": {known, map[string]string{assignment.HandoverKey: ""}, testTime, false},
		"the same under another key":            {elsewhere, nil, testTime, true},
		"that was edited":                       {elsewhere, map[string]string{other: "{ }"}, testTime, false},
		"it was damaged before":                 {ownerOf(t, s, map[string]string{assignment.EpochKey: "8"}), nil, testTime, false},
		"a quarantine depends on the time":      {ownerOf(t, strict, nil), nil, testTime, false},
		"so does an epoch that is ahead":        {known, nil, testTime.Add(-48 * time.Hour), false},
	} {
		annotations := maps.Clone(tc.known.Annotations)
		maps.Copy(annotations, tc.change)
		if tc.known.says(annotations, tc.now) != tc.want {
			t.Errorf("%s: the same is %t", name, !tc.want)
		}
	}
}

// The first write under another key takes the place of the assignment that named no pod.
func TestAnAssignmentOfNobodyIsReplaced(t *testing.T) {
	const other = "team.example/ids"
	from := ownerOf(t, assignment.State{}, assignment.State{Epoch: 6}.Encode(other, "o"), wrote(assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, assignment.SealKey))
	if !from.Clean() || from.Record.OtherKey != other {
		t.Fatalf("%s, under %q", from.Trust, from.Record.OtherKey)
	}
	body, err := ownerPatch(from, assignment.DefaultKey, assignment.State{Slots: assignment.Slots{0: "a"}, Epoch: 7})
	if err != nil || !strings.Contains(string(body), `{"op":"remove","path":"/metadata/annotations/team.example~1ids"}`) {
		t.Errorf("%s, %v", body, err)
	}
}

func TestOwnersThatCannotBeServed(t *testing.T) {
	for says, spec := range map[string]string{
		"spec.strategy: maxUnavailable": `{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":"lots"}},` + labelsOfA + `}`,
		"spec.strategy: maxSurge":       `{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"lots","maxUnavailable":1}},` + labelsOfA + `}`,
		"would select every pod":        `{"selector":{}}`,
		`is not a valid label selector`: `{"selector":{"matchExpressions":[{"key":"app","operator":"Maybe"}]}}`,
	} {
		object := decodeObject(t, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"o"},"spec":`+spec+`}`))
		if o, err := DecodeOwner(testRef(), object, assignment.DefaultKey, testTime, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", spec, o, err)
		}
	}
	both := `{"selector":{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"tier","operator":"Exists"}]}}`
	object := decodeObject(t, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"o"},"spec":`+both+`}`))
	if o, err := DecodeOwner(testRef(), object, assignment.DefaultKey, testTime, nil); err != nil || o.Selector != "app=a,tier" {
		t.Errorf("%q, %v", o.Selector, err)
	}
}
