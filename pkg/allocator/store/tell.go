package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// The types of Events.
const (
	EventNormal  = "Normal"
	EventWarning = "Warning"
)

const (
	// eventPeriod is the time in which an object gets at most one Event with the same reason.
	eventPeriod = time.Minute
	// maxEventMessage is the longest message that the API server accepts, in bytes.
	maxEventMessage = 1024
)

// KubeEvent is a Kubernetes Event about an object, for people who look at it.
type KubeEvent struct {
	// About is the object. kubectl describe finds the Event by its UID.
	About metav1.OwnerReference
	// Namespace is the namespace of the object.
	Namespace string
	// Reporter is the name of the pod that reports the Event.
	Reporter string
	// Type is EventNormal or EventWarning.
	Type string
	// Reason is a word in CamelCase. Message is a sentence; Tell cuts it to 1024 bytes.
	Reason, Message string
	// Detail distinguishes Events with the same reason, so that each of them is kept.
	Detail string
}

// About returns the owner as the subject of an Event.
func (o Owner) About() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
}

// Tell writes an Event to the API server. Only the first Event of each minute with the same object, reason and detail is kept, regardless of the sender: a
// hundred pods that notice the same thing do not write a hundred Events. Tell returns nil if that Event already exists. It blocks until the server has
// answered. Errors: *request.ForbiddenError, or the server's own.
func (s *Store) Tell(ctx context.Context, e KubeEvent) error {
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	now := s.Clock.Now()
	stamp := now.UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata":   map[string]any{"name": eventName(e.About.Name, e.About.UID, e.Reason+e.Detail, now), "namespace": e.Namespace},
		"involvedObject": map[string]any{
			"apiVersion": e.About.APIVersion, "kind": e.About.Kind, "namespace": e.Namespace, "name": e.About.Name, "uid": string(e.About.UID),
		},
		"type":               e.Type,
		"reason":             e.Reason,
		"message":            shorten(strings.Map(printable, e.Message), maxEventMessage),
		"count":              int64(1),
		"firstTimestamp":     stamp,
		"lastTimestamp":      stamp,
		"reportingComponent": "idalloc.dev/allocator",
		"reportingInstance":  e.Reporter,
		"source":             map[string]any{"component": "idalloc"},
	}}
	_, err := request.Send(ctx, request.Target{GVR: events, Namespace: e.Namespace}, "create", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(events).Namespace(e.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: assignment.FieldManager})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
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

// Shown prepares a text of others for log lines, Events and errors: at most 256 bytes, and quoted unless it is a plain word.
func Shown(text string) string {
	const most = 256
	short := strings.ToValidUTF8(text[:min(len(text), most/4)], "") // quoting may need up to four bytes for one
	switch {
	case len(text) > most:
		return fmt.Sprintf("%q and %d bytes more", short, len(text)-len(short))
	case strings.Map(printable, text) != text || strings.ContainsAny(text, " \""):
		return shorten(strconv.Quote(text), most)
	}
	return text
}

// printable replaces characters that control a terminal.
func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}

// shorten cuts text to at most this many bytes.
func shorten(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(dots)], "") + dots
}
