package store

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

const labelsOfA = `"selector":{"matchLabels":{"app":"a"}}`

func withPartitions() assignment.State {
	return assignment.State{
		Slots: assignment.Slots{0: "a"},
		Row:   &assignment.Row{Count: 4, Strategy: "sticky", Owners: placement.Owners{0: placement.Between(0, 3)}},
	}
}

func ownerOf(t *testing.T, s assignment.State, change map[string]string) Owner {
	t.Helper()
	object := decodeObject(t, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"o"},"spec":{`+labelsOfA+`}}`))
	object.Annotations = s.Encode()
	maps.Copy(object.Annotations, change)
	o, err := DecodeOwner(testRef(), object, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What an event says of annotations is not read again if it is what is known.
func TestTheSameAnnotationsAreReadOnce(t *testing.T) {
	known := ownerOf(t, assignment.State{Slots: assignment.Slots{0: "a"}}, nil)
	for name, tc := range map[string]struct {
		change map[string]string
		want   bool
	}{
		"the same":                              {nil, true},
		"something else was added":              {map[string]string{"team": "x"}, true},
		"the map was edited":                    {map[string]string{assignment.Key: "{}"}, false},
		"a key of ours was added, though empty": {map[string]string{assignment.HandoverKey: ""}, false},
		"so was a row":                          {map[string]string{assignment.PartitionOwnersKey: "x"}, false},
	} {
		annotations := maps.Clone(known.Annotations)
		maps.Copy(annotations, tc.change)
		if known.says(annotations) != tc.want {
			t.Errorf("%s: the same is %t", name, !tc.want)
		}
	}
}

// What the user wishes is read with the map.
func TestTheUsersWish(t *testing.T) {
	wish := map[string]string{assignment.PartitionCountKey: "64"}
	if o := ownerOf(t, assignment.State{}, wish); !reflect.DeepEqual(o.Wish, assignment.DecodeWish(wish)) || reflect.DeepEqual(o.Wish, assignment.DecodeWish(nil)) {
		t.Errorf("%+v", o.Wish)
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
		if o, err := DecodeOwner(testRef(), object, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", spec, o, err)
		}
	}
	both := `{"selector":{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"tier","operator":"Exists"}]}}`
	object := decodeObject(t, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"o"},"spec":`+both+`}`))
	if o, err := DecodeOwner(testRef(), object, nil); err != nil || o.Selector != "app=a,tier" {
		t.Errorf("%q, %v", o.Selector, err)
	}
}
