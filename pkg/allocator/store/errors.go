package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var (
	// ErrConflict means that the object changed since it was read. Read again and plan again.
	ErrConflict = errors.New("idalloc: the object changed since it was read")
	// ErrAmbiguous means that no answer came, so the write may have happened or may happen later. Read again
	// before anything else.
	ErrAmbiguous = errors.New("idalloc: no answer to a write; it may still happen")
	// ErrNoAnswer means that the server did not say what it did with a request: a broken connection, a timeout,
	// a server error, or somebody else's answer.
	ErrNoAnswer = errors.New("idalloc: no answer from the API server")
	// ErrGone means that the API server says that the object does not exist.
	ErrGone = errors.New("idalloc: the object does not exist")
	// ErrNewer means that a newer version wrote the state, in a format that this one does not know.
	ErrNewer = errors.New("idalloc: a newer idalloc wrote this assignment")
	// ErrOtherKey means that pods with another annotation key have the assignment.
	ErrOtherKey = errors.New("idalloc: another annotation key is in use")
)

// ForbiddenError says which permission is missing. Repeating does not cure it.
type ForbiddenError struct {
	Verb, Group, Resource, Namespace, Name string
	Err                                    error
}

// Error names the verb and the resource, and where to put them.
func (e *ForbiddenError) Error() string {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	on := "in namespace " + e.Namespace
	if e.Name != "" {
		on = fmt.Sprintf("%q %s", e.Name, on)
	}
	return fmt.Sprintf("idalloc: forbidden: cannot %s %s %s: add verb %q on resource %q of API group %q to the Role of the pod's service account%s: %v",
		e.Verb, resource, on, e.Verb, e.Resource, e.Group, e.names(), e.Err)
}

// names says what to look for where the verb is there already.
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

// Temporary reports whether repeating the request may help: the server is away, overloaded, slow,
// or did not accept the credentials yet. Errors that say what is wrong with the request are not.
func Temporary(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrAmbiguous) || errors.Is(err, ErrNoAnswer) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// unanswered judges a client's error: behind anything but an API server's answer below 500 the request may have
// been carried out.
func (t target) unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == 0 || apierrors.IsTimeout(err) || (code == http.StatusNotFound && !t.gone(err))
}

// gone reports whether the API server says that this very object does not exist. A proxy in between, or a server that does
// not know the path, answers 404 too, and whoever is gone loses a slot. The client makes a Status of such an answer, which
// may even name the object, but says that nobody expected it.
func (t target) gone(err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return false
	}
	status := api.Status()
	about := status.Details
	return t.name != "" && status.Reason == metav1.StatusReasonNotFound && about != nil &&
		about.Name == t.name && about.Kind == t.gvr.Resource && about.Group == t.gvr.Group &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// check refuses a name that fits into no path. Some clients refuse it themselves, with an error that looks as if no answer
// had come; others ask for something else.
func (t target) check(verb string) error {
	for _, part := range []string{t.namespace, t.name} {
		if wrong := rest.IsValidPathSegmentName(part); len(wrong) > 0 {
			return fmt.Errorf("%s: %q cannot be a name: it %s", t.try(verb), part, wrong[0])
		}
	}
	return nil
}

// wrap turns an API error into this package's, with what was tried in it.
func (t target) wrap(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && isRBAC(err):
		return &ForbiddenError{Verb: verb, Group: t.gvr.Group, Resource: t.gvr.Resource, Namespace: t.namespace, Name: t.name, Err: err}
	case t.gone(err):
		return fmt.Errorf("%s: %w: %w", t.try(verb), ErrGone, err)
	}
	if t.unanswered(err) {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, t.try(verb), err)
	}
	return fmt.Errorf("%s: %w", t.try(verb), err)
}

func (t target) try(verb string) string {
	if t.name == "" {
		return fmt.Sprintf("idalloc: %s %s in namespace %s", verb, t.gvr.Resource, t.namespace)
	}
	return fmt.Sprintf("idalloc: %s %s %q in namespace %s", verb, t.gvr.Resource, t.name, t.namespace)
}

// isRBAC tells an authorizer's refusal, which a Role cures, from an admission plugin's or a
// quota's, which also come as 403. The authorizer's message has "cannot VERB resource".
func isRBAC(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return rbacMessage.MatchString(status.Status().Message)
}

// requestContext bounds one request: an unanswered one is repeated rather than waited for.
func requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, RequestTimeout)
}

// Forbidden returns the ForbiddenError of a request that this package did not make.
func Forbidden(verb string, gvr schema.GroupVersionResource, namespace, name string, err error) *ForbiddenError {
	return &ForbiddenError{Verb: verb, Group: gvr.Group, Resource: gvr.Resource, Namespace: namespace, Name: name, Err: err}
}
