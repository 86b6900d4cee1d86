package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

const longHelp = `idalloc-autoscaler measures how fast each partition of a workload grows, packs the partitions into as
few pods as work that off, and sets the number of pods and which id owns what. It moves as little load as it
can. The workload's strategy for partitions must be "external".

It needs to know what one pod works off (--capacity), and where to read the loads (--source). Run one
Deployment of it for each workload; several replicas elect one that acts.

Every flag has an environment variable: --max-age is IDALLOC_AUTOSCALER_MAX_AGE. A flag on the command
line wins.

Exit codes: 0 done; 1 error; 2 usage; 4 forbidden by RBAC (the message names the missing verb and resource).`

// logging are the flags that every command has.
type logging struct {
	format    string
	verbosity int
}

func newRoot() *cobra.Command {
	l := &logging{}
	root := &cobra.Command{
		Use:               "idalloc-autoscaler",
		Short:             "Scale a workload by the load of its partitions",
		Long:              longHelp,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	}
	f := root.PersistentFlags()
	f.StringVar(&l.format, "log-format", "json", "format of the log on standard error: json or console")
	f.IntVarP(&l.verbosity, "v", "v", 0, "verbosity of the log: 0 shows each change and each decision, 1 each step")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newRun(l), newGet(), newPlan(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	})
	describeEnvironment(root)
	return root
}

// logger returns a logger that writes to standard error. client-go's log goes there, too.
func (l *logging) logger() (logr.Logger, error) {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(config)
	switch {
	case l.format == "console":
		encoder = zapcore.NewConsoleEncoder(config)
	case l.format != "json":
		return logr.Discard(), usageError{fmt.Errorf("--log-format %q: use json or console", l.format)}
	}
	if l.verbosity < 0 || l.verbosity > 10 {
		return logr.Discard(), usageError{fmt.Errorf("-v %d: use 0 to 10", l.verbosity)}
	}
	log := zapr.NewLogger(zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.Level(-l.verbosity))))
	klog.SetLogger(log.WithName("client-go"))
	return log, nil
}

func twin(f *pflag.Flag) string {
	return "IDALLOC_AUTOSCALER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
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
		if f.Name != "help" {
			f.Usage += " [" + twin(f) + "]"
		}
	}
	cmd.PersistentFlags().VisitAll(describe)
	cmd.LocalNonPersistentFlags().VisitAll(describe)
	for _, sub := range cmd.Commands() {
		describeEnvironment(sub)
	}
}
