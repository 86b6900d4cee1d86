// Package connect finds the API server by kubectl's rules. In a pod these end with the service account.
package connect

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are those that say which API server to ask.
type Flags struct {
	// Kubeconfig is the path of a file, empty for none.
	Kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// Bind adds the flags, as kubectl has them.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file; if empty, KUBECONFIG, then ~/.kube/config, then the pod's service account")
	connection := clientcmd.RecommendedConfigOverrideFlags("")
	connection.ClusterOverrideFlags.APIServer.ShortName = "s" // the same as kubectl's
	clientcmd.BindOverrideFlags(&f.overrides, flags, connection)
}

// Config returns a client configuration by kubectl's rules, with what the flags say. It uses the first of these that exists: the
// kubeconfig file, if it is not empty; KUBECONFIG; ~/.kube/config; the pod's service account. namespace is the one that the
// configuration names, or "default".
func (f *Flags) Config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	config, err = loader.ClientConfig()
	if err != nil {
		// Error: exit code 1: there is no way to an API server.
		// Do: in a pod, set `serviceAccountName` and mount the token; elsewhere use `--kubeconfig`.
		return nil, "", fmt.Errorf("idalloc: no API server: %w: in a pod set serviceAccountName and automountServiceAccountToken; "+
			"elsewhere set --kubeconfig or KUBECONFIG", err)
	}
	namespace, _, err = loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("idalloc: namespace: %w", err)
	}
	// No rate limit: one process sends few requests and has its own back-off, and the API server protects itself by priority
	// and fairness. A limit here would only delay hand-overs.
	config.QPS = -1
	return config, namespace, nil
}
