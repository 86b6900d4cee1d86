package kubeevent

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/idalloc/idalloc/internal/sanitise"
)

// Resource is the resource of Events.
var Resource = schema.GroupVersionResource{Version: "v1", Resource: "events"} //nolint:gochecknoglobals // a constant that Go cannot express

// The types of Events.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

const (
	// eventPeriod is the time in which an object gets at most one Event with the same reason.
	eventPeriod = time.Minute
	// maxEventMessage is the longest message that the API server accepts, in bytes.
	maxEventMessage = 1024
)

// Event is a Kubernetes Event about an object. Users see it in kubectl describe.
type Event struct {
	// About is the object. kubectl describe finds the Event by its UID.
	About metav1.OwnerReference
	// Namespace is the namespace of the object.
	Namespace string
	// Reporter is the name of the pod that reports the Event.
	Reporter string
	// Type is Normal or Warning.
	Type string
	// Reason is a word in CamelCase. Message is a sentence; Object cuts it to 1024 bytes.
	Reason, Message string
	// Detail distinguishes Events with the same reason, so that each of them is kept.
	Detail string
}

// Object returns the Event as an API object. Events of one minute with the same object, reason and detail have the same name.
func (e Event) Object(now time.Time) *unstructured.Unstructured {
	stamp := now.UTC().Format(time.RFC3339)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata":   map[string]any{"name": eventName(e.About.Name, e.About.UID, e.Reason+e.Detail, now), "namespace": e.Namespace},
		"involvedObject": map[string]any{
			"apiVersion": e.About.APIVersion, "kind": e.About.Kind, "namespace": e.Namespace, "name": e.About.Name, "uid": string(e.About.UID),
		},
		"type":               e.Type,
		"reason":             e.Reason,
		"message":            sanitise.Line(e.Message, maxEventMessage),
		"count":              int64(1),
		"firstTimestamp":     stamp,
		"lastTimestamp":      stamp,
		"reportingComponent": "idalloc.dev/allocator",
		"reportingInstance":  e.Reporter,
		"source":             map[string]any{"component": "idalloc"},
	}}
}

// eventName returns a name that is equal in every process for the same object and reason in the same minute.
func eventName(name string, uid types.UID, reason string, now time.Time) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%d", uid, reason, now.Unix()/int64(eventPeriod/time.Second))
	suffix := fmt.Sprintf(".%016x", h.Sum64())
	if most := validation.DNS1123SubdomainMaxLength - len(suffix); len(name) > most {
		name = strings.TrimRight(name[:most], ".-")
	}
	return name + suffix
}
