package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Object is the part of an owner that idalloc reads. The decoder skips all other fields, mainly the pod template, so they take no memory.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec   `json:"spec"`
	Status            status `json:"status"`
}

type spec struct {
	Replicas    *int                  `json:"replicas"`
	Parallelism *int                  `json:"parallelism"`
	Selector    *metav1.LabelSelector `json:"selector"`
	Ordinals    struct {
		Start int `json:"start"`
	} `json:"ordinals"`
	Strategy       strategy `json:"strategy"`
	UpdateStrategy struct {
		RollingUpdate struct {
			Partition int `json:"partition"`
		} `json:"rollingUpdate"`
	} `json:"updateStrategy"`
	Paused          bool `json:"paused"`
	MinReadySeconds int  `json:"minReadySeconds"`
}

type strategy struct {
	Type          string `json:"type"`
	RollingUpdate struct {
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
		MaxSurge       *intstr.IntOrString `json:"maxSurge"`
	} `json:"rollingUpdate"`
}

type status struct {
	Replicas          int `json:"replicas"`
	UpdatedReplicas   int `json:"updatedReplicas"`
	ReadyReplicas     int `json:"readyReplicas"`
	AvailableReplicas int `json:"availableReplicas"`
	// TerminatingReplicas are not in Replicas. Kubernetes has counted them since 1.35. A StatefulSet lacks the field and counts them in Replicas.
	TerminatingReplicas int `json:"terminatingReplicas"`
	// Conditions are read of a Deployment, and CurrentRevision and UpdateRevision of a StatefulSet.
	Conditions      []condition `json:"conditions"`
	CurrentRevision string      `json:"currentRevision"`
	UpdateRevision  string      `json:"updateRevision"`
	// Active, Ready and Terminating belong to a Job.
	Active      int `json:"active"`
	Ready       int `json:"ready"`
	Terminating int `json:"terminating"`
}

type condition struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return deepCopy(o, &Object{}) }

// Objects is a list of owners.
type Objects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Object `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *Objects) DeepCopyObject() runtime.Object { return deepCopy(l, &Objects{}) }

// deepCopy copies through JSON. Clients require it, but idalloc never calls it.
func deepCopy[T runtime.Object](from, to T) T {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic("idalloc: what was read as JSON does not encode: " + err.Error())
	}
	return to
}

// objectCodec decodes the API server's answers about owners: an Object, a list of Objects, or a Status. It encodes nothing,
// because a patch is sent as bytes.
type objectCodec struct{}

// Negotiated returns the codec of owners in the form that a client needs.
func Negotiated() runtime.NegotiatedSerializer {
	c := objectCodec{}
	return runtime.NewSimpleNegotiatedSerializer(runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: c,
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: eventCodec{c}, Framer: eventFramer{}},
	})
}

// Decode implements runtime.Decoder. If data has a Status, it returns a *metav1.Status, regardless of into. Otherwise, if into is nil, it returns an
// *Object.
func (objectCodec) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		into = &Object{}
	}
	err := json.Unmarshal(data, into)
	if kind := into.GetObjectKind().GroupVersionKind(); kind.Kind == "Status" && kind.Version == "v1" {
		into = &metav1.Status{} // its field "status" is a string, so it does not decode into an Object
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	kind := into.GetObjectKind().GroupVersionKind()
	return into, &kind, nil
}

// Encode implements runtime.Encoder.
func (objectCodec) Encode(runtime.Object, io.Writer) error {
	return errors.New("an owner is changed by patches only")
}

// Identifier implements runtime.Encoder.
func (objectCodec) Identifier() runtime.Identifier { return "idalloc" }

// eventCodec reads the events of a watch.
type eventCodec struct{ objectCodec }

// Decode implements runtime.Decoder. If possible, the event's object is a slice of data.
func (eventCodec) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	decoded := false
	if event, ok := into.(*metav1.WatchEvent); ok {
		*event, decoded = splitEvent(data)
	}
	if !decoded {
		if err := json.Unmarshal(data, into); err != nil {
			return nil, nil, fmt.Errorf("read an event: %w", err)
		}
	}
	return into, &schema.GroupVersionKind{}, nil
}
