package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// RequestTimeout bounds every single request. It is shorter than the API server's own limit of a minute, so a lost answer
// costs only seconds.
const RequestTimeout = 15 * time.Second

var rbacMessage = regexp.MustCompile(`cannot \w+ resource`)

// Pods is the resource of pods.
var Pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"} //nolint:gochecknoglobals // a constant that Go cannot express

// LivePods is a field selector for pods that are neither Succeeded nor Failed. Evicted pods are Failed.
const LivePods = "status.phase!=Succeeded,status.phase!=Failed"

// Store reads and writes owners and receipts. It is safe for concurrent use.
type Store struct {
	// Dynamic and Metadata are clients of the same API server.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// owners is a client of that server, too. It decodes owners as Objects.
	owners rest.Interface
	// Key is the assignment's annotation key.
	Key string
	// Clock is the time that epochs are checked against and that Events carry.
	Clock clock.Clock
	// memory recognizes clean maps.
	memory memory
}

// New returns a Store for the API server of config. It sends no request. key is the assignment's annotation key; an empty
// key stands for assignment.DefaultKey. It fails if the config or the key is not valid.
func New(config *rest.Config, key string, clk clock.Clock) (*Store, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("idalloc: client: %w", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("idalloc: client: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("idalloc: client: %w", err)
	}
	owners, err := newOwners(config, client)
	if err != nil {
		return nil, fmt.Errorf("idalloc: client: %w", err)
	}
	if key == "" {
		key = assignment.DefaultKey
	}
	if err := CheckKey(key); err != nil {
		return nil, fmt.Errorf("idalloc: annotation key %w", err)
	}
	return &Store{Dynamic: dyn, Metadata: meta, owners: owners, Key: key, Clock: clk}, nil
}

// CheckKey returns an error if key cannot be the assignment's annotation key: Kubernetes does not accept it, or idalloc
// uses it for another annotation.
func CheckKey(key string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("%q: %s", key, strings.Join(problems, "; "))
	}
	if key != assignment.DefaultKey && strings.HasPrefix(key, "idalloc.dev/") {
		return fmt.Errorf("%q: idalloc.dev/ is kept for idalloc's other annotations", key)
	}
	return nil
}

// target is the object of a request, or a namespace's objects if name is empty. It makes the request's errors.
type target struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// Get reads the owner. Errors: ErrGone, *ForbiddenError, or another error that Temporary judges.
func (s *Store) Get(ctx context.Context, ref Ref) (Owner, error) {
	t := target{ref.GVR(), ref.Namespace, ref.Name}
	if err := t.check("get"); err != nil {
		return Owner{}, err
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	o, err := s.getObject(ctx, ref)
	if err != nil {
		return Owner{}, t.wrap("get", err)
	}
	return s.Decode(ref, o, nil)
}

// GetWhole reads the owner with all fields, its whole status included. Errors: as of Get.
func (s *Store) GetWhole(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	t := target{ref.GVR(), ref.Namespace, ref.Name}
	if err := t.check("get"); err != nil {
		return nil, err
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	u, err := s.Dynamic.Resource(t.gvr).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	return u, t.wrap("get", err)
}

// Decode is DecodeOwner with this process's memory: a Deployment's map that the process has seen clean stays clean when the
// server forgets who wrote it.
func (s *Store) Decode(ref Ref, object *Object, earlier *Owner) (Owner, error) {
	o, err := DecodeOwner(ref, object, s.Key, s.Clock.Now(), earlier)
	if err == nil {
		s.memory.vouch(&o)
	}
	return o, err
}

// Commit makes next the owner's state if nothing but the owner's status has changed since from was read. It returns the
// owner as written. Errors: ErrConflict, ErrAmbiguous, ErrGone, *ForbiddenError, or the server's own. After ErrNewer,
// ErrOtherKey and *assignment.TooLargeError nothing was sent.
func (s *Store) Commit(ctx context.Context, from Owner, next assignment.State) (Owner, error) {
	if err := from.Unreadable(); err != nil {
		return Owner{}, err
	}
	t := target{from.GVR(), from.Namespace, from.Name}
	if err := t.check("patch"); err != nil {
		return Owner{}, err
	}
	if err := from.Room().Check(next, assignment.RepairLimit); err != nil {
		return Owner{}, err
	}
	body, err := ownerPatch(from, s.Key, next)
	if err != nil {
		return Owner{}, err
	}
	rctx, cancel := requestContext(ctx)
	defer cancel()
	o, err := s.patchObject(rctx, from.Ref, body)
	if err == nil {
		written, err := s.Decode(from.Ref, o, nil)
		s.memory.wrote(&written)
		return written, err
	}
	if t.unanswered(err) {
		return Owner{}, fmt.Errorf("%w: %w", ErrAmbiguous, t.wrap("patch", err))
	}
	if apierrors.IsConflict(err) {
		return Owner{}, fmt.Errorf("%w: %w", ErrConflict, t.wrap("patch", err))
	}
	if !apierrors.IsInvalid(err) {
		return Owner{}, t.wrap("patch", err)
	}
	return Owner{}, s.judge(ctx, from, t.wrap("patch", err))
}

// judge tells a conflict from a real refusal: the server answers 422 both to a failed test of a JSON Patch and to an invalid
// object. So judge reads the owner again and evaluates the patch's tests on it.
func (s *Store) judge(ctx context.Context, from Owner, refused error) error {
	now, err := s.Get(ctx, from.Ref)
	switch {
	case errors.Is(err, ErrGone):
		return fmt.Errorf("%w: %w", ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConflict, err) // nobody knows; after a conflict the caller reads again anyway
	case now.UID != from.UID || version(now, from.comparesGeneration()) != version(from, from.comparesGeneration()) || (now.Annotations == nil) != (from.Annotations == nil):
		return ErrConflict
	}
	return refused
}

// version returns the value that the compare-and-swap compares: see ownerPatch.
func version(o Owner, generation bool) string {
	if generation {
		return strconv.FormatInt(o.Generation, 10)
	}
	return o.ResourceVersion
}

func (o Owner) comparesGeneration() bool {
	certain := func(t assignment.Trust) bool { return t == assignment.Clean || t == assignment.Absent }
	return kinds[o.Kind].versioned && certain(o.Trust) && certain(o.PartitionTrust)
}
