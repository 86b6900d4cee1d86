// Command kubectl-idalloc is the kubectl plugin. It contains what people need and pods do not. See kubectl idalloc --help.
//
// It is a separate program, so that the one in pods imports none of this. Both get what they show from internal/inspect. Of cli-runtime it links only the
// printers, because genericclioptions would bring in kustomize.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/sanitise"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newRoot() //nolint:contextcheck // cobra gives each command the context of ExecuteContext
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	stderr = sanitise.Writer(stderr)
	cmd.SetErr(stderr)
	for _, c := range cmd.Commands() {
		if c.Name() != "inject" && c.Name() != "top" { // manifests keep their bytes, and top checks for a terminal itself
			c.SetOut(sanitise.Writer(stdout))
		}
	}
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	if code := cli.ExitCode(err); code != cli.ExitError || !apierrors.IsForbidden(err) {
		return code
	}
	return cli.ExitForbidden
}
