package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/people"
	"github.com/idalloc/idalloc/internal/plain"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const longHelp = `kubectl idalloc shows which pod has which id, says what is wrong, and prepares workloads for idalloc.

Exit codes: 0 done; 1 error, or verify found something; 2 usage; 4 forbidden by RBAC.`

// global holds the flags that every command has. They are those of kubectl, so the commands' own help does not list them.
type global struct{ connect.Flags }

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use: "kubectl-idalloc", Short: "Which pod has which id, and why", Long: longHelp,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl idalloc"},
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Help,
	}
	g.Bind(root.PersistentFlags())
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(newGet(g), g.ofUsers(people.NewVerify(g.program())), newExplain(g), newTop(g), g.ofUsers(people.NewGC(g.program())), newEnable(g), newInject(), newCheck(g), newVersion(), newOptions())
	root.SetUsageTemplate(usageOf(root.UsageTemplate()))
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	g.completeFlags(root)
	return root
}

// usageOf returns cobra's template without the flags that all commands have.
func usageOf(template string) string {
	const own, inherited, end = "{{if .HasAvailableLocalFlags}}", "{{if .HasAvailableInheritedFlags}}", "{{end}}"
	template = strings.Replace(template, own, "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	before, after, found := strings.Cut(template, inherited)
	_, after, closed := strings.Cut(after, end)
	if !found || !closed {
		return template // another cobra; its own is fine, too
	}
	return before + after + "\n\nUse \"kubectl idalloc options\" for the flags that all commands have.\n"
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that all commands have", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "All commands have these flags:\n\n"+cmd.InheritedFlags().FlagUsages())
			return err
		},
	}
}

// program returns the program for the commands that idalloc has, too.
func (g *global) program() people.Program {
	log := func() (logr.Logger, error) { return klog.Background(), nil }
	return people.Program{Name: "kubectl idalloc", Connect: g.connect, Log: log, Formats: kubectlFormats}
}

// ofUsers completes a command's arguments: workloads that use idalloc.
func (g *global) ofUsers(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = g.completeUsers
	return cmd
}

// connect returns a Store, and the namespace that the flags or the kubeconfig name.
func (g *global) connect() (s *store.Store, namespace string, err error) {
	config, namespace, err := g.Config()
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = "kubectl-idalloc/" + version
	config.WarningHandler = rest.NewWarningWriter(plain.Writer(os.Stderr), rest.WarningWriterOptions{Deduplicate: true})
	s, err = store.New(connect.Alive(config, 0), clock.RealClock{})
	return s, namespace, err
}

// one connects, and returns the one workload that args name.
func (g *global) one(args []string) (*store.Store, store.Ref, error) {
	ref, err := people.One(args)
	if err != nil {
		return nil, ref, err
	}
	s, namespace, err := g.connect()
	ref.Namespace = namespace
	return s, ref, err
}
