// Package connect finds the API server by kubectl's rules. In a pod these end with the service account.
package connect

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns a client configuration by kubectl's rules, with these overrides. It uses the first of these that exists: the
// kubeconfig file, if it is not empty; KUBECONFIG; ~/.kube/config; the pod's service account. namespace is the one that the
// configuration names, or "default".
func Config(kubeconfig string, overrides *clientcmd.ConfigOverrides) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
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
