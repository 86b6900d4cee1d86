package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inject"
)

// image is the default of --image. A release's linker sets it to the released image with its digest.
var image = inject.DefaultImage //nolint:gochecknoglobals // the linker sets no constant

type injectCommand struct {
	file    string
	options inject.Options
}

func newInject() *cobra.Command {
	i := &injectCommand{}
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add what a pod needs to get an id to manifests",
		Long: `Reads manifests, and writes them with what the label of each pod template asks
for:

  idalloc.dev/inject: "true"       the native sidecar
  idalloc.dev/assign: agent        in addition: the controller plans
  idalloc.dev/assign: controller   what an id of the controller needs: a gate,
                                   IDALLOC_ID, IDALLOC_COUNT and files

All else stays as it is, comments included. To inject twice does no harm. The
command talks to no cluster. The policies of config/inject and config/assign
make the same pods where the cluster has Kubernetes 1.36. A sidecar needs a Role
and a service account, which "kubectl idalloc enable" makes.`,
		Example: `  kubectl idalloc inject -f deployment.yaml | kubectl apply -f -
  kubectl idalloc inject --by=controller --all -f deployment.yaml
  kustomize build . | kubectl idalloc inject -f - --image=example.com/idalloc:1`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return i.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&i.file, "filename", "f", "", "file with manifests; - is standard input")
	f.BoolVar(&i.options.All, "all", false, "also change workloads without a label")
	f.StringVar(&i.options.By, "by", "", "sidecar, agent or controller: change only workloads that ask for it")
	f.StringVar(&i.options.Image, "image", "", "idalloc's image, for templates that name none; empty: this version")
	return cmd
}

var errNoFile = cli.Usagef("name a file with -f, or - for standard input")

func (i *injectCommand) run(stdin io.Reader, stdout, stderr io.Writer) error {
	if by := i.options.By; !slices.Contains([]string{"", inject.BySidecar, inject.ByAgent, inject.ByController}, by) {
		return cli.Usagef("--by is %q: use %s, %s or %s", by, inject.BySidecar, inject.ByAgent, inject.ByController)
	}
	manifests, err := i.read(stdin)
	if err != nil {
		return err
	}
	i.options.Image = cmp.Or(i.options.Image, image)
	i.options.Warn = func(sentence string) { _, _ = fmt.Fprintln(stderr, "warning:", sentence) }
	result, workloads, err := inject.Stream(string(manifests), i.options)
	if err != nil {
		return err
	}
	if len(workloads) == 0 {
		_, _ = fmt.Fprintf(stderr, "no workload asks for an id%s, or use --all\n", i.asks())
	}
	_, err = io.WriteString(stdout, result)
	return err
}

// asks describes how a workload asks for what --by selects.
func (i *injectCommand) asks() string {
	const sidecar, controller = inject.Label + `: "true"`, inject.AssignLabel + ": " + inject.ByController
	switch i.options.By {
	case inject.BySidecar:
		return " of a sidecar: give its pod template the label " + sidecar
	case inject.ByAgent:
		return " of a sidecar: give its pod template the label " + sidecar + ", to which this command adds " + inject.AssignLabel + ": " + inject.ByAgent
	case inject.ByController:
		return " of the controller: give its pod template the label " + controller
	}
	return ": give its pod template the label " + controller + " or " + sidecar
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
