package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/plain"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const longHelp = `kubectl idalloc shows which pod has which id, says what is wrong, and prepares workloads for idalloc.

Exit codes: 0 done; 1 error, or verify found something; 2 usage; 4 forbidden by RBAC.`

// global holds the flags that every command has. They are those of kubectl, so the commands' own help does not list them.
type global struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use: "kubectl-idalloc", Short: "Which pod has which id, and why", Long: longHelp,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl idalloc"},
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see kubectl idalloc --help", args[0])}
			}
			return cmd.Help()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&g.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; if empty, KUBECONFIG, then ~/.kube/config")
	connection := clientcmd.RecommendedConfigOverrideFlags("")
	connection.ClusterOverrideFlags.APIServer.ShortName = "s" // the same as kubectl's
	clientcmd.BindOverrideFlags(&g.overrides, f, connection)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newGet(g), newVerify(g), newExplain(g), newTop(g), newGC(g), newEnable(g), newInject(), newVersion(), newOptions())
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
		Use: "options", Short: "List the flags that all commands have", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "All commands have these flags:\n\n"+cmd.InheritedFlags().FlagUsages())
			return err
		},
	}
}

// connect returns a Store, and the namespace that the flags or the kubeconfig name.
func (g *global) connect() (s *store.Store, namespace string, err error) {
	config, namespace, err := connect.Config(g.kubeconfig, &g.overrides)
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = "kubectl-idalloc/" + version
	config.WarningHandler = rest.NewWarningWriter(plain.Writer(os.Stderr), rest.WarningWriterOptions{Deduplicate: true})
	s, err = store.New(config, clock.RealClock{})
	return s, namespace, err
}

// one connects, and returns the one workload that args name.
func (g *global) one(args []string) (*store.Store, store.Ref, error) {
	t, err := parseTargets(args)
	if err == nil && len(t.refs) != 1 {
		err = usageError{errors.New("name one workload: KIND/NAME, for example deployment/worker")}
	}
	if err != nil {
		return nil, store.Ref{}, err
	}
	s, namespace, err := g.connect()
	ref := t.refs[0]
	ref.Namespace = namespace
	return s, ref, err
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

// targets are what the arguments of a command name: workloads, or kinds. Neither stands for all kinds.
type targets struct {
	refs  []store.Ref
	kinds []string
}

// parseTargets reads arguments as kubectl does: KIND/NAME..., KIND[,KIND] or KIND NAME....
func parseTargets(args []string) (t targets, err error) {
	if len(args) == 0 {
		return t, nil
	}
	if !strings.Contains(args[0], "/") {
		for word := range strings.SplitSeq(args[0], ",") {
			of, err := store.ParseRef(word+"/any", "")
			if err != nil {
				return t, usageError{err}
			}
			t.kinds = append(t.kinds, of.Kind)
		}
		if len(args) > 1 && len(t.kinds) > 1 {
			return t, usageError{fmt.Errorf("%q are several kinds: name the workloads as KIND/NAME", args[0])}
		}
	}
	for k, arg := range args {
		if len(t.kinds) > 0 {
			if k == 0 {
				continue
			}
			arg = t.kinds[0] + "/" + arg
		}
		ref, err := store.ParseRef(arg, "")
		if err != nil {
			return t, usageError{err}
		}
		t.refs = append(t.refs, ref)
	}
	return t, nil
}
