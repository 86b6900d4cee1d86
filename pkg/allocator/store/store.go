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

// RequestTimeout bounds every single request. It is shorter than the API server's own limit of a
// minute, so that a lost answer costs seconds.
const RequestTimeout = 15 * time.Second

var rbacMessage = regexp.MustCompile(`cannot \w+ resource`)

// Pods is the resource of pods.
var Pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"} //nolint:gochecknoglobals // a constant that Go cannot express

// LivePods is the field selector of pods that are not dead; evicted pods stay as Failed.
const LivePods = "status.phase!=Succeeded,status.phase!=Failed"

// Store reads and writes owners and receipts. It is safe for concurrent use.
type Store struct {
	// Dynamic and Metadata are the clients of one API server.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// owners is a client of the same server that decodes of owners only what Object has.
	owners rest.Interface
	// Key is the assignment's annotation key.
	Key string
	// Clock dates epochs and checks them.
	Clock clock.Clock
	// memory knows a clean map again.
	memory memory
}

// New returns a Store on the API server of config. key is the assignment's annotation key, the
// default one if empty.
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

// CheckKey refuses a key for the assignment that Kubernetes would not have as an annotation's, or that idalloc uses for another one.
func CheckKey(key string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("%q: %s", key, strings.Join(problems, "; "))
	}
	if key != assignment.DefaultKey && strings.HasPrefix(key, "idalloc.dev/") {
		return fmt.Errorf("%q: idalloc.dev/ is kept for idalloc's other annotations", key)
	}
	return nil
}

// target is what a request is about, for its error.
type target struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// Get reads the owner. Errors: ErrGone, *ForbiddenError, or another that Temporary judges.
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

// GetWhole reads the owner with all that its controllers say of it. Errors are those of Get.
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

// Decode is DecodeOwner with what this process remembers: a Deployment's map that it saw clean stays clean when the server
// forgets who wrote it.
func (s *Store) Decode(ref Ref, object *Object, earlier *Owner) (Owner, error) {
	o, err := DecodeOwner(ref, object, s.Key, s.Clock.Now(), earlier)
	if err == nil {
		s.memory.vouch(&o)
	}
	return o, err
}

// Commit makes next the owner's state if nothing but the owner's status changed since from was
// read, and returns the owner as written. Errors: ErrConflict, ErrAmbiguous, ErrGone,
// *ForbiddenError, ErrNewer, ErrOtherKey or *assignment.TooLargeError (nothing was sent), or the server's own.
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

// judge tells a conflict from a refusal by evaluating the patch's tests on the owner as it is now: a
// failed test of a JSON Patch comes as 422, like an object that is not valid.
func (s *Store) judge(ctx context.Context, from Owner, refused error) error {
	now, err := s.Get(ctx, from.Ref)
	switch {
	case errors.Is(err, ErrGone):
		return fmt.Errorf("%w: %w", ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConflict, err) // unknown: reading again is what comes next anyway
	case now.UID != from.UID || version(now, from.comparesGeneration()) != version(from, from.comparesGeneration()) || (now.Annotations == nil) != (from.Annotations == nil):
		return ErrConflict
	}
	return refused
}

// version is what the compare-and-swap compares: see ownerPatch.
func version(o Owner, generation bool) string {
	if generation {
		return strconv.FormatInt(o.Generation, 10)
	}
	return o.ResourceVersion
}

func (o Owner) comparesGeneration() bool {
	return kinds[o.Kind].versioned && (o.Clean() || o.Trust == assignment.Absent)
}
