package main

import (
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// connectTo returns the workload that the arguments name, and how to reach its API server.
func connectTo(flags *connect.Flags, args []string) (store.Ref, *rest.Config, error) {
	if len(args) == 2 { // kubectl also takes KIND NAME
		args = []string{args[0] + "/" + args[1]}
	}
	if len(args) != 1 {
		return store.Ref{}, nil, cli.Usagef("name one workload: KIND/NAME, for example deployment/worker")
	}
	ref, err := store.ParseRef(args[0], "")
	if err != nil {
		return ref, nil, cli.Usage(err)
	}
	config, namespace, err := flags.Config()
	if err != nil {
		return ref, nil, err
	}
	ref.Namespace = namespace
	config.UserAgent = "idalloc-autoscaler/" + version
	return ref, config, nil
}
