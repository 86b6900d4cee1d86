package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inject"
)

// image is the sidecar's unless --image names another. A release's linker sets it to what was released, with its digest.
var image = inject.DefaultImage //nolint:gochecknoglobals // the linker sets no constant

type injectCommand struct {
	file    string
	options inject.Options
}

func newInject() *cobra.Command {
	i := &injectCommand{}
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add the sidecar to the workloads of manifests",
		Long: `Reads manifests, and writes them with idalloc's native sidecar in each Deployment, StatefulSet,
ReplicaSet and Job whose pod template has the label idalloc.dev/inject: "true". All else is written
as it is, comments included. A template that has the sidecar is brought up to date, so it does no
harm to inject twice. It talks to no cluster.

The pods are the same that the policy of config/inject makes; use that where the cluster has
Kubernetes 1.36. Annotations of the template say how the sidecar is to be, for example
inject.idalloc.dev/drain: http. The workload's Role and service account must exist: kubectl
idalloc enable makes them.`,
		Example: `  kubectl idalloc inject -f deployment.yaml | kubectl apply -f -
  kubectl idalloc inject -f deployment.yaml | kubectl diff -f -
  kustomize build . | kubectl idalloc inject -f - --image=registry.example.com/idalloc:v0.1.0`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return i.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&i.file, "filename", "f", "", "file with the manifests, in YAML or JSON; - is standard input")
	f.BoolVar(&i.options.All, "all", false, "add the sidecar to all workloads, also without the label; a template with the value \"false\" stays as it is")
	f.StringVar(&i.options.Image, "image", image, "idalloc's image, for templates that do not name one")
	return cmd
}

var errNoFile = cli.Usagef("name a file with -f, or - for standard input")

func (i *injectCommand) run(stdin io.Reader, stdout, stderr io.Writer) error {
	manifests, err := i.read(stdin)
	if err != nil {
		return err
	}
	i.options.Warn = func(sentence string) { _, _ = fmt.Fprintln(stderr, "warning:", sentence) }
	result, workloads, err := inject.Stream(string(manifests), i.options)
	if err != nil {
		return err
	}
	if len(workloads) == 0 {
		_, _ = fmt.Fprintf(stderr, "no workload asks for the sidecar: give its pod template the label %s: \"true\", or use --all\n", inject.Label)
	}
	_, err = io.WriteString(stdout, result)
	return err
}

func (i *injectCommand) read(stdin io.Reader) ([]byte, error) {
	switch i.file {
	case "":
		return nil, errNoFile
	case "-":
		return io.ReadAll(stdin)
	}
	return os.ReadFile(i.file)
}
