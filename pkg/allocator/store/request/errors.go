package request

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var (
	// ErrConflict means that the object changed since it was read. Read again and plan again.
	ErrConflict = errors.New("the object changed since it was read")
	// ErrAmbiguous means that no answer came, so the write may have happened or may still happen. Read again before anything else.
	ErrAmbiguous = errors.New("no answer to a write; it may still happen")
	// ErrNoAnswer means that it is unknown what the server did with a request: a broken connection, a timeout, a server error, or another program's answer.
	ErrNoAnswer = errors.New("no answer from the API server")
	// ErrRefused means that the API server refuses the content of a write from any program: by an admission webhook, a policy or a quota. That may change.
	ErrRefused = errors.New("the API server refuses what is written")
	// ErrNotKept means that the API server accepted a write but stored something else, because an admission webhook or policy changes it.
	ErrNotKept = errors.New("what was written came back changed")
	// ErrGone means that, according to the API server, the object does not exist.
	ErrGone = errors.New("the object does not exist")
)

var rbacMessage = regexp.MustCompile(`cannot \w+ resource`)

// ForbiddenError names the missing RBAC permission. A retry does not help.
type ForbiddenError struct {
	// Name is empty for a request about all objects of the namespace, and Namespace for a request about all namespaces.
	Verb, Group, Resource, Namespace, Name string
	// Err is the API server's error.
	Err error
}

// Error names the verb and the resource, and the role that needs them. The API server's error names the account of the pod or the person.
func (e *ForbiddenError) Error() string {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	on, role := "in namespace "+e.Namespace, "Role"
	if e.Namespace == "" {
		on, role = "in all namespaces", "ClusterRole"
	}
	if e.Name != "" {
		on = fmt.Sprintf("%q %s", e.Name, on)
	}
	// Error: exit code 4: RBAC refuses a request.
	// Do: add the verb that the sentence names to the Role, or the name to its rule's `resourceNames`. It takes effect at once.
	return fmt.Sprintf("forbidden: cannot %s %s %s: add verb %q on resource %q of API group %q to a %s of the account that the API server names%s: %v",
		e.Verb, resource, on, e.Verb, e.Resource, e.Group, role, e.names(), e.Err)
}

// names returns a hint that resourceNames may deny the request, in case the Role already has the verb.
func (e *ForbiddenError) names() string {
	switch {
	case e.Name != "":
		return fmt.Sprintf("; if it is there, its rule's resourceNames do not list %q", e.Name)
	case e.Verb == "list" || e.Verb == "watch":
		return "; if it is there, its rule has resourceNames, which this request, for all of them, must not have"
	}
	return ""
}

// Unwrap returns the API server's error.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// AsRefused makes an error an ErrRefused if the API server refuses the content of a write rather than its sender.
func AsRefused(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || Temporary(err) || errors.Is(err, ErrGone) || errors.As(err, new(*ForbiddenError)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// Temporary reports whether a retry may help. It may if the server is away, overloaded or slow, if the object has changed, or if the server does not accept
// the credentials yet. It does not if the request itself is wrong.
func Temporary(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrAmbiguous) || errors.Is(err, ErrNoAnswer) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// NoContact reports whether err carries no information about the object: no answer came, or the server refused the credentials.
func NoContact(err error) bool { return errors.Is(err, ErrNoAnswer) || apierrors.IsUnauthorized(err) }

// Unauthorized adds advice to err if the API server does not accept the credentials. It returns any other error unchanged.
func Unauthorized(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	return fmt.Errorf("%w: the API server does not accept the credentials: renew them; those of a pod end with it and with its service account: "+
		"if that was deleted and made again, delete the pod, since the kubelet renews its token late", err)
}

// unanswered reports whether the server may have carried out a request that ended with this error. Only an API server's own answer with a code below 500
// rules that out.
func (t Target) unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == 0 || apierrors.IsTimeout(err) || (code == http.StatusNotFound && !t.gone(err))
}

// gone reports whether the API server says that this very object does not exist. It must be sure, because a pod that is gone loses its slot. A proxy, or a
// server that does not know the path, also answers 404. The client turns such an answer into a Status that may even name the object, but that has the cause
// UnexpectedServerResponse.
func (t Target) gone(err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return false
	}
	status := api.Status()
	about := status.Details
	return t.Name != "" && status.Reason == metav1.StatusReasonNotFound && about != nil &&
		about.Name == t.Name && about.Kind == t.GVR.Resource && about.Group == t.GVR.Group &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// check returns an error if a name cannot be part of a path. Clients do not check that reliably: some return an error that looks like a missing answer, and
// others send a request for another object.
func (t Target) check(verb string) error {
	for _, part := range []string{t.Namespace, t.Name} {
		if wrong := rest.IsValidPathSegmentName(part); len(wrong) > 0 {
			return fmt.Errorf("%s: %q cannot be a name: it %s", t.try(verb), part, wrong[0])
		}
	}
	return nil
}

// wrap turns an error of a client into one of this package. Its text names the failed request.
func (t Target) wrap(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && isRBAC(err):
		return &ForbiddenError{Verb: verb, Group: t.GVR.Group, Resource: t.GVR.Resource, Namespace: t.Namespace, Name: t.Name, Err: err}
	case t.gone(err):
		return fmt.Errorf("%s: %w: %w", t.try(verb), ErrGone, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w", t.try(verb), Unauthorized(err))
	}
	if t.unanswered(err) {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, t.try(verb), err)
	}
	return fmt.Errorf("%s: %w", t.try(verb), err)
}

// try describes a request in a few words.
func (t Target) try(verb string) string {
	if t.Name == "" {
		return fmt.Sprintf("%s %s in namespace %s", verb, t.GVR.Resource, t.Namespace)
	}
	return fmt.Sprintf("%s %s %q in namespace %s", verb, t.GVR.Resource, t.Name, t.Namespace)
}

// ByRBAC reports whether RBAC refused a request that another package sent. Admission has the same code.
func ByRBAC(err error) bool { return apierrors.IsForbidden(err) && isRBAC(err) }

// isRBAC reports whether a 403 comes from the authorizer, so that a Role can change it. Admission plugins and quotas also answer 403. Only the authorizer's
// message contains "cannot VERB resource".
func isRBAC(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return rbacMessage.MatchString(status.Status().Message)
}

// Forbidden returns the ForbiddenError of a request that another package sent. err is the API server's error.
func Forbidden(verb string, gvr schema.GroupVersionResource, namespace, name string, err error) *ForbiddenError {
	return &ForbiddenError{Verb: verb, Group: gvr.Group, Resource: gvr.Resource, Namespace: namespace, Name: name, Err: err}
}

// Kept returns an error that wraps ErrNotKept if stands differs from sent. Both contain, by key, the values of an object that affect its readers. on names the
// object.
func Kept(sent, stands map[string]string, on string) error {
	both := maps.Clone(sent)
	maps.Copy(both, stands)
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(both)), func(key string) bool {
		was, wanted := sent[key]
		is, there := stands[key]
		return was == is && wanted == there
	})
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s of %s: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it",
		ErrNotKept, strings.Join(changed, ", "), on)
}
