package main

import (
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const longHelp = `kubectl idalloc shows which pod has which id, says what is wrong, and prepares
workloads for idalloc.

Exit codes: 0 done; 1 error, or verify or check found something; 2 usage; 4
forbidden by RBAC.`

// global holds the flags that all commands have. They are kubectl's, so the commands' own help does not list them.
type global struct{ connect.Flags }

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use: "kubectl-idalloc", Short: "Which pod has which id, and why", Long: longHelp,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl idalloc"},
		Args:        cobra.ArbitraryArgs,
		RunE:        cli.Help,
	}
	g.Bind(root.PersistentFlags())
	root.AddCommand(newGet(g), g.ofUsers(commands.NewVerify(g.program())), newExplain(g), newTop(g), g.ofUsers(commands.NewGC(g.program())),
		newEnable(g), newRelease(g), newInject(), newCheck(g), newObserve(g),
		commands.NewVersion("kubectl-idalloc", version, formats()))
	cli.Program(root, version)
	g.completeFlags(root)
	return root
}

// program returns the program for the commands that idalloc also has.
func (g *global) program() commands.Program {
	log := func() (logr.Logger, error) { return klog.Background(), nil }
	return commands.Program{Name: "kubectl idalloc", Connect: g.connect, Log: log, Formats: formats()}
}

// ofUsers makes a command complete its arguments with workloads that use idalloc.
func (g *global) ofUsers(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = g.completeUsers
	return cmd
}

// connect returns a Store, and the namespace from the flags or the kubeconfig.
func (g *global) connect() (s *store.Store, namespace string, err error) {
	config, namespace, err := g.Config()
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = "kubectl-idalloc/" + version
	config.WarningHandler = rest.NewWarningWriter(sanitise.Writer(os.Stderr), rest.WarningWriterOptions{Deduplicate: true})
	s, err = store.New(connect.Alive(config, 0), clock.RealClock{})
	return s, namespace, err
}

// one connects, and returns the one workload that args name.
func (g *global) one(args []string) (*store.Store, kinds.Ref, error) {
	ref, err := commands.One(args)
	if err != nil {
		return nil, ref, err
	}
	s, namespace, err := g.connect()
	ref.Namespace = namespace
	return s, ref, err
}
