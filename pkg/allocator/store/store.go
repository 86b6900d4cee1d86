package store

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Pods is the resource of pods.
var Pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"} //nolint:gochecknoglobals // a constant that Go cannot express

// LivePods is a field selector for pods that are neither Succeeded nor Failed. Evicted pods are Failed.
const LivePods = "status.phase!=Succeeded,status.phase!=Failed"

// Store reads and writes owners and receipts. It is safe for concurrent use.
type Store struct {
	// Dynamic and Metadata are clients of the same API server.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// owners is a client of the same server that decodes owners as Objects.
	owners rest.Interface
	config *rest.Config
	// Pages bounds by its capacity how many pages of lists are in memory at a time. Nil means no bound.
	Pages chan struct{}
	// Clock provides the times of Events.
	Clock clock.Clock
	// dryRun is the dryRun option of patches.
	dryRun []string
}

// Dry returns a Store whose patches change nothing: the API server only answers as if they did.
func (s *Store) Dry() *Store {
	dry := *s
	dry.dryRun = []string{metav1.DryRunAll}
	return &dry
}

// New returns a Store for the API server of config. It sends no request. It fails if the config is not valid.
func New(config *rest.Config, clk clock.Clock) (*Store, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper { return answers{transport} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	owners, err := newOwners(config, client)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Store{Dynamic: dyn, Metadata: meta, owners: owners, config: config, Clock: clk}, nil
}

// As returns a Store whose requests impersonate a user. That needs the verb impersonate on the user, and on each key of extra.
func (s *Store) As(user string, extra map[string][]string) (*Store, error) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Extra: extra}
	return New(config, s.Clock)
}

// targetOf is the target of a request about an owner.
func targetOf(r kinds.Ref) request.Target {
	return request.Target{GVR: r.GVR(), Namespace: r.Namespace, Name: r.Name}
}

func podTarget(namespace, name string) request.Target {
	return request.Target{GVR: Pods, Namespace: namespace, Name: name}
}

// Get reads the owner. Errors: request.ErrGone, *request.ForbiddenError, or another error that Temporary judges.
func (s *Store) Get(ctx context.Context, ref kinds.Ref) (Owner, error) {
	if ref.Resource != "" {
		return s.getScaled(ctx, ref)
	}
	o, err := s.getObject(ctx, ref)
	if err != nil {
		return Owner{}, err
	}
	return DecodeOwner(ref, o, nil)
}

// GetWhole reads the owner with all fields, including its whole status. Errors: as of Get.
func (s *Store) GetWhole(ctx context.Context, ref kinds.Ref) (*unstructured.Unstructured, error) {
	return s.getWhole(ctx, targetOf(ref))
}

// GetFullPod reads a pod with its status. Errors: as of GetPod.
func (s *Store) GetFullPod(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return s.getWhole(ctx, podTarget(namespace, name))
}

// GetOwnPod reads a pod's metadata, and whether the pod is Graceless. Errors: as of GetPod.
func (s *Store) GetOwnPod(ctx context.Context, namespace, name string) (pod *metav1.PartialObjectMetadata, graceless bool, err error) {
	whole, err := s.GetFullPod(ctx, namespace, name)
	if err != nil {
		return nil, false, err
	}
	pod = &metav1.PartialObjectMetadata{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": whole.Object["metadata"]}, pod)
	return pod, Graceless(whole), err
}

// Graceless reports whether each deletion of a pod is a force delete, because its grace period is 0.
func Graceless(pod *unstructured.Unstructured) bool {
	grace, set, _ := unstructured.NestedInt64(pod.Object, "spec", "terminationGracePeriodSeconds")
	return set && grace == 0
}

func (s *Store) getWhole(ctx context.Context, t request.Target) (*unstructured.Unstructured, error) {
	return request.Send(ctx, t, "get", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(t.GVR).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	})
}

// GetMetadata reads the metadata of an object. Errors: as of Get.
func (s *Store) GetMetadata(ctx context.Context, ref kinds.Ref) (*metav1.PartialObjectMetadata, error) {
	return s.getMetadata(ctx, targetOf(ref))
}

// GetPod reads a pod's metadata. Errors: request.ErrGone, *request.ForbiddenError, or another error that Temporary judges.
func (s *Store) GetPod(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return s.getMetadata(ctx, podTarget(namespace, name))
}

func (s *Store) getMetadata(ctx context.Context, t request.Target) (*metav1.PartialObjectMetadata, error) {
	return request.Send(ctx, t, "get", func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return s.Metadata.Resource(t.GVR).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	})
}

// LastWrite returns when idalloc last wrote an object, zero if the server does not record it.
func LastWrite(fields []metav1.ManagedFieldsEntry) time.Time {
	for i := range fields {
		if f := &fields[i]; f.Manager == assignment.FieldManager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" && f.Time != nil {
			return f.Time.Time
		}
	}
	return time.Time{}
}
