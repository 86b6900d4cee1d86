package inspect

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// tokenLife is how long the token of a pod lasts by default. The kubelet writes a new one before.
const tokenLife = time.Hour

// readAccounts returns when the service accounts of the pods were made, by their names. It has none that may not be read.
func (n snapshot) readAccounts(ctx context.Context, s *store.Store) map[string]time.Time {
	made := map[string]time.Time{}
	accounts := s.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(n.owner.Namespace)
	for _, p := range n.pods {
		if _, asked := made[p.account]; asked || p.account == "" {
			continue
		}
		made[p.account] = time.Time{}
		if account, err := accounts.Get(ctx, p.account, metav1.GetOptions{}); err == nil {
			made[p.account] = account.CreationTimestamp.Time
		}
	}
	return made
}

// checkAccounts warns of pods whose tokens name a service account that was deleted since. Nothing else says so: the pods cannot.
func (c *checker) checkAccounts() {
	refused := map[string][]string{}
	for _, name := range c.names() {
		p := c.pods[name]
		if made := c.accounts[p.account]; !made.IsZero() && p.live() && !p.Terminating && p.sign() && p.Created.Before(made) && c.now.Before(made.Add(tokenLife)) {
			refused[p.account] = append(refused[p.account], name)
		}
	}
	for account, pods := range refused {
		c.warnf("service account %s was made again after these pods had started: %s: the API server refuses their tokens until the kubelet has written new ones, "+
			"up to an hour after %s; until then they keep ids and hand none over, but not in strict mode: delete them one after the other",
			account, strings.Join(pods, ", "), c.accounts[account].UTC().Format(time.RFC3339))
	}
}
