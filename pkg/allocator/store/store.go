package store

import (
	"context"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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
	// Clock is the time that Events carry.
	Clock clock.Clock
}

// New returns a Store for the API server of config. It sends no request. It fails if the config is not valid.
func New(config *rest.Config, clk clock.Clock) (*Store, error) {
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
	return &Store{Dynamic: dyn, Metadata: meta, owners: owners, Clock: clk}, nil
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
	return DecodeOwner(ref, o, nil)
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
