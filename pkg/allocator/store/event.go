package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The types of Events.
const (
	EventNormal  = "Normal"
	EventWarning = "Warning"
)

const (
	// eventPeriod is the time in which an object gets one Event of a reason at most.
	eventPeriod = time.Minute
	// maxEventMessage is what the API server takes of a message, in bytes.
	maxEventMessage = 1024
)

// Event tells people who look at an object what happened to it.
type Event struct {
	// About is the object. Its UID is how kubectl describe finds the Event.
	About metav1.OwnerReference
	// Namespace is the object's.
	Namespace string
	// Reporter is the pod that tells.
	Reporter string
	// Type is EventNormal or EventWarning.
	Type string
	// Reason is a word in CamelCase, and Message a sentence.
	Reason, Message string
}

// About names this moment's owner in an Event.
func (o Owner) About() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
}

// Tell leaves an Event. Of all Events of one reason about one object only the first one of a minute is kept, whoever
// leaves it: a hundred pods that see one thing do not tell it a hundred times. Errors: *ForbiddenError, or
// the server's own.
func (s *Store) Tell(ctx context.Context, e Event) error {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	now := s.Clock.Now()
	stamp := now.UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata":   map[string]any{"name": eventName(e.About.Name, e.About.UID, e.Reason, now), "namespace": e.Namespace},
		"involvedObject": map[string]any{
			"apiVersion": e.About.APIVersion, "kind": e.About.Kind, "namespace": e.Namespace, "name": e.About.Name, "uid": string(e.About.UID),
		},
		"type":               e.Type,
		"reason":             e.Reason,
		"message":            shorten(e.Message, maxEventMessage),
		"count":              int64(1),
		"firstTimestamp":     stamp,
		"lastTimestamp":      stamp,
		"reportingComponent": "idalloc.dev/allocator",
		"reportingInstance":  e.Reporter,
		"source":             map[string]any{"component": "idalloc"},
	}}
	_, err := s.Dynamic.Resource(events).Namespace(e.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: assignment.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil // told already
	}
	return target{gvr: events, namespace: e.Namespace}.wrap("create", err)
}

// eventName is the same for every process that has the same to tell in the same minute.
func eventName(name string, uid types.UID, reason string, now time.Time) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%d", uid, reason, now.Unix()/int64(eventPeriod/time.Second))
	suffix := fmt.Sprintf(".%016x", h.Sum64())
	if most := validation.DNS1123SubdomainMaxLength - len(suffix); len(name) > most {
		name = strings.TrimRight(name[:most], ".-")
	}
	return name + suffix
}

// shorten cuts text to at most this many bytes.
func shorten(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(dots)], "") + dots
}
