package store

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/store/page"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

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
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper { return page.Transport{RoundTripper: transport} })
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

// newOwners returns a client that decodes owners as Objects.
func newOwners(config *rest.Config, client *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = wire.Negotiated()
	config.GroupVersion, config.APIPath = nil, "/" // each request sets its own path
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}
