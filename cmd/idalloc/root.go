package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/people"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const longHelp = `idalloc gives every replica of a Deployment, StatefulSet, ReplicaSet or Job a small integer
id of its own, 0 <= id < count, and keeps telling it both numbers. An annotation of the workload
says which pod should have which id, and one of each pod which id it has. There is no server
and no custom resource.

In a pod there are three ways to use it:
  - "idalloc init" as an init container, and "idalloc watch" beside the program;
  - "idalloc watch" alone, as a native sidecar;
  - "idalloc run", which starts the program itself; "idalloc install" brings it into other images.
From a shell, "idalloc get deployment/worker" shows which pod has which id.

Every flag has an environment variable: --http-address is IDALLOC_HTTP_ADDRESS. A flag on the
command line wins.

Exit codes: 0 done; 1 error; 2 usage; 3 no slot within --timeout; 4 forbidden by RBAC (the
message names the missing verb and resource). idalloc run exits with the code of its command;
see idalloc run --help.`

// global holds the flags that every command has.
type global struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	logFormat  string
	verbosity  int
}

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:           "idalloc",
		Short:         "A small integer id for every replica of a Kubernetes workload",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see idalloc --help", args[0])}
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags())
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&g.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; if empty, KUBECONFIG, then ~/.kube/config, then the pod's service account")
	connection := clientcmd.RecommendedConfigOverrideFlags("")
	connection.ClusterOverrideFlags.APIServer.ShortName = "s" // the same as kubectl's
	clientcmd.BindOverrideFlags(&g.overrides, f, connection)
	f.StringVar(&g.logFormat, "log-format", "json", "format of the log on standard error: json or console")
	f.IntVarP(&g.verbosity, "v", "v", 0, "verbosity of the log: 0 shows what an operator acts on, 1 adds steps, 4 adds details of requests")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	p := g.program()
	root.AddCommand(newInit(g), newWatch(g), people.NewGet(p), people.NewVerify(p), newRun(g), newInstall(), people.NewGC(p), newVersion())
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	describeEnvironment(root)
	return root
}

// connect returns a Store, and the namespace that the flags or the kubeconfig name.
func (g *global) connect() (s *store.Store, namespace string, err error) {
	config, namespace, err := connect.Config(g.kubeconfig, &g.overrides)
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = "idalloc/" + version
	s, err = store.New(config, clock.RealClock{})
	return s, namespace, err
}

// partitionsFlag is the flag --partitions of several commands.
const partitionsFlag = "partitions"

// twin returns the environment variable of a flag. IDALLOC_PARTITIONS is what idalloc tells a program, in which idalloc may be called.
func twin(f *pflag.Flag) string {
	if f.Name == partitionsFlag {
		return "IDALLOC_WITH_PARTITIONS"
	}
	return "IDALLOC_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that are not on the command line from their environment variables.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := os.LookupEnv(twin(f))
		if !ok || f.Changed || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, usageError{fmt.Errorf("environment variable %s: %w", twin(f), err)})
		}
	})
	return errors.Join(errs...)
}

// describeEnvironment adds the environment variable of each flag to its help.
func describeEnvironment(cmd *cobra.Command) {
	describe := func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(f.Usage, "IDALLOC_") {
			f.Usage += " [" + twin(f) + "]"
		}
	}
	cmd.PersistentFlags().VisitAll(describe)
	cmd.LocalNonPersistentFlags().VisitAll(describe)
	for _, sub := range cmd.Commands() {
		describeEnvironment(sub)
	}
}
