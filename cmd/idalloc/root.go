package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const longHelp = `idalloc gives every replica of a ` + kinds.Any + `
a small integer id of its own, 0 <= id < count, and keeps telling it both
numbers. There is no server and no custom resource.

In a pod there are three ways to use it:
  - "idalloc init" as an init container, and "idalloc watch" beside the program;
  - "idalloc watch" alone, as a native sidecar;
  - "idalloc run", which starts the program; "idalloc install" copies idalloc
    into other images.
At a shell, "idalloc get deployment/worker" shows which pod has which id.

Each flag has an environment variable: --http-address is IDALLOC_HTTP_ADDRESS.
A flag on the command line wins.

Exit codes: 0 done; 1 error; 2 usage; 3 no slot within --timeout; 4 forbidden by
RBAC. "idalloc run" exits with the code of its command.`

// global holds the flags that all commands have.
type global struct {
	connect.Flags
	log cli.Log
}

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:   "idalloc",
		Short: "A small integer id for every replica of a Kubernetes workload",
		Long:  longHelp,
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.Help,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Environment(environment).Set(cmd.Flags())
		},
	}
	f := root.PersistentFlags()
	g.Bind(f)
	g.log.Bind(f, "1 adds steps, 4 adds requests")
	p := g.program()
	get := commands.NewGet(p)
	root.AddCommand(newInit(g), newWatch(g), get, commands.NewVerify(p), newRun(g), newInstall(), commands.NewGC(p),
		commands.NewVersion("idalloc", version, p.Formats))
	cli.Program(root, version)
	for _, f := range []*pflag.Flag{root.PersistentFlags().Lookup("token"), get.Flags().Lookup(partitionsFlag)} {
		f.Usage += " [" + environment(f) + "]" // not derived by the rule
	}
	return root
}

// connect returns a Store for this fence-after, and the namespace from the flags or the kubeconfig.
func (g *global) connect(fenceAfter time.Duration) (s *store.Store, namespace string, err error) {
	config, namespace, err := g.Config()
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = "idalloc/" + version
	s, err = store.New(connect.Alive(config, fenceAfter), clock.RealClock{})
	return s, namespace, err
}

// partitionsFlag is the flag --partitions of several commands.
const partitionsFlag = "partitions"

// environment returns the environment variable of a flag. IDALLOC_PARTITIONS and IDALLOC_TOKEN get other names, because idalloc sets these for a program, which
// may itself call idalloc.
func environment(f *pflag.Flag) string {
	switch f.Name {
	case partitionsFlag:
		return "IDALLOC_WITH_PARTITIONS"
	case "token":
		return "IDALLOC_BEARER_TOKEN"
	}
	return cli.Prefixed("IDALLOC")(f)
}
