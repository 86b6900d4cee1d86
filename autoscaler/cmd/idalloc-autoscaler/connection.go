package main

import (
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// connectTo returns the workload that the arguments name, and the configuration of its API server.
func connectTo(flags *connect.Flags, args []string) (kinds.Ref, *rest.Config, error) {
	ref, err := commands.One(args)
	if err != nil {
		return ref, nil, err
	}
	config, namespace, err := flags.Config()
	if err != nil {
		return ref, nil, err
	}
	ref.Namespace = namespace
	config.UserAgent = "idalloc-autoscaler/" + version
	return ref, config, nil
}
