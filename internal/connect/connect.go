// Package connect finds the API server by kubectl's rules. In a pod the last resort is the service account.
package connect

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/internal/failpoint"
)

// Flags select the API server.
type Flags struct {
	// Kubeconfig is the path of a file, empty for none.
	Kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// Bind adds the same flags as kubectl.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	kubectls := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BindKubeconfig(kubectls)
	connection := clientcmd.RecommendedConfigOverrideFlags("")
	connection.ClusterOverrideFlags.APIServer.ShortName = "s" // the same as kubectl's
	clientcmd.BindOverrideFlags(&f.overrides, kubectls, connection)
	kubectls.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{mark: nil} })
	flags.AddFlagSet(kubectls)
}

// BindKubeconfig adds only the flag for a kubeconfig file.
func (f *Flags) BindKubeconfig(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig file, before KUBECONFIG and ~/.kube/config")
}

// mark is the annotation on flags that Bind adds.
const mark = "idalloc.dev/kubectl"

// Is reports whether Bind added the flag.
func Is(flag *pflag.Flag) bool {
	_, marked := flag.Annotations[mark]
	return marked
}

// Config returns a client configuration by kubectl's rules, with the flags applied. It uses the first of these that exists: the kubeconfig file, if it is not
// empty; KUBECONFIG; ~/.kube/config; the pod's service account. namespace comes from the configuration, otherwise it is "default".
func (f *Flags) Config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	config, err = loader.ClientConfig()
	switch pod := os.Getenv("KUBERNETES_SERVICE_HOST") != ""; {
	case clientcmd.IsEmptyConfig(err) && pod: // client-go's error names a variable that nothing reads
		// Error: exit code 1: the pod has no token for the API server.
		// Do: set `serviceAccountName`, and mount the token.
		return nil, "", errors.New("this pod has no token for the API server: set serviceAccountName, and leave automountServiceAccountToken on")
	case clientcmd.IsEmptyConfig(err):
		// Error: exit code 1: neither a flag nor a file names an API server.
		// Do: name a kubeconfig file.
		return nil, "", errors.New("no kubeconfig names a cluster: point KUBECONFIG or --kubeconfig to a file that kubectl works with")
	case err != nil:
		// Error: exit code 1: the kubeconfig file cannot be used.
		// Do: repair it, or name another one.
		return nil, "", fmt.Errorf("the kubeconfig cannot be used: %w: repair it, or name another one with --kubeconfig", err)
	}
	namespace, _, err = loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("namespace: %w", err)
	}
	// No rate limit: one process sends few requests and has its own back-off, and the API server protects itself with priority and fairness. A limit here would
	// only delay hand-overs.
	config.QPS = -1
	failpoint.Wrap(config)
	return config, namespace, nil
}
