package store

import (
	"encoding/json"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

func TestWhenARollingUpdateIsUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, status string
		want         bool
	}{
		"a Deployment begins one":               {kinds.Deployment, `{"conditions":[{"type":"Available","reason":"x"},{"type":"Progressing","reason":"NewReplicaSetCreated"}],"replicas":3,"updatedReplicas":3}`, true},
		"it continues":                          {kinds.Deployment, `{"conditions":[{"type":"Progressing","reason":"ReplicaSetUpdated"}],"replicas":3,"updatedReplicas":3}`, true},
		"it has ended":                          {kinds.Deployment, `{"conditions":[{"type":"Progressing","reason":"NewReplicaSetAvailable"}],"replicas":3,"updatedReplicas":3}`, false},
		"a pod was deleted since":               {kinds.Deployment, `{"conditions":[{"type":"Progressing","reason":"NewReplicaSetAvailable"}],"replicas":3,"updatedReplicas":2}`, false},
		"one without a deadline continues":      {kinds.Deployment, `{"replicas":3,"updatedReplicas":1}`, true},
		"one without a deadline has ended":      {kinds.Deployment, `{"replicas":2,"updatedReplicas":2}`, false},
		"a StatefulSet replaces its pods":       {kinds.StatefulSet, `{"replicas":3,"currentRevision":"a","updateRevision":"b"}`, true},
		"a StatefulSet has replaced them":       {kinds.StatefulSet, `{"replicas":2,"currentRevision":"b","updateRevision":"b"}`, false},
		"a ReplicaSet has no updates to follow": {kinds.ReplicaSet, `{"replicas":3}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := wire.Object{}
			if err := json.Unmarshal([]byte(`{"spec":{"selector":{"matchLabels":{"app":"x"}}},"status":`+tc.status+`}`), &object); err != nil {
				t.Fatal(err)
			}
			owner, err := DecodeOwner(refOf(t, tc.kind), &object, nil)
			if err != nil || owner.RollsNow != tc.want {
				t.Errorf("%v, %v", owner.RollsNow, err)
			}
		})
	}
}
