// Package connect finds the API server: in a pod by its service account, elsewhere by kubectl's rules.
package connect

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns the client configuration that kubectl's rules give with these overrides: an
// explicit kubeconfig file, else KUBECONFIG, else ~/.kube/config, else the pod's service account.
// namespace is the one that the configuration names, "default" if none.
func Config(kubeconfig string, overrides *clientcmd.ConfigOverrides) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err = loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("idalloc: no API server: %w: in a pod set serviceAccountName and automountServiceAccountToken; "+
			"elsewhere set --kubeconfig or KUBECONFIG", err)
	}
	namespace, _, err = loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("idalloc: namespace: %w", err)
	}
	// One process makes a handful of requests, with back-off of its own; the API server's priority
	// and fairness protects the rest. A limiter here would only delay a hand-over.
	config.QPS = -1
	return config, namespace, nil
}
