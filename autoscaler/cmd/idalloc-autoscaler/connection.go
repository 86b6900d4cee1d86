package main

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// connection are the flags that say which API server to ask.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

func (c *connection) bind(f *pflag.FlagSet) {
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; if empty, KUBECONFIG, then ~/.kube/config, then the pod's service account")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&c.overrides, f, flags)
}

// connect returns the workload that the arguments name, and how to reach its API server.
func (c *connection) connect(args []string) (store.Ref, *rest.Config, error) {
	if len(args) == 2 { // kubectl also takes KIND NAME
		args = []string{args[0] + "/" + args[1]}
	}
	if len(args) != 1 {
		return store.Ref{}, nil, usageError{errors.New("name one workload: KIND/NAME, for example deployment/worker")}
	}
	ref, err := store.ParseRef(args[0], "")
	if err != nil {
		return ref, nil, usageError{err}
	}
	config, namespace, err := connect.Config(c.kubeconfig, &c.overrides)
	if err != nil {
		return ref, nil, err
	}
	ref.Namespace = namespace
	config.UserAgent = "idalloc-autoscaler/" + version
	return ref, config, nil
}
