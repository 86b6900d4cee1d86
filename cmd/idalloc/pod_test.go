package main

import (
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
)

func TestADirectoryIsNamed(t *testing.T) {
	for _, command := range []string{"init", "watch"} {
		root := newRoot()
		root.SetArgs([]string{command, "--dir=", "--pod-name=worker-0", "--pod-namespace=shop", "--server=http://127.0.0.1:1"})
		err := root.ExecuteContext(t.Context())
		if exitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--dir is empty") {
			t.Errorf("%s is %v, want a usage error", command, err)
		}
	}
}

func TestEveryFlagHasAnEnvironmentTwin(t *testing.T) {
	t.Setenv("IDALLOC_TIMEOUT", "7s")
	t.Setenv("IDALLOC_HTTP_ADDRESS", "127.0.0.1:1")
	root := newRoot()
	watch, _, err := root.Find([]string{"watch"})
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.ParseFlags([]string{"--http-address", ":2"}); err != nil {
		t.Fatal(err)
	}
	if err := cli.Environment(environment).Set(watch.Flags()); err != nil {
		t.Fatal(err)
	}
	if got := watch.Flag("timeout").Value.String(); got != "7s" {
		t.Errorf("--timeout is %s, want the environment's 7s", got)
	}
	if got := watch.Flag("http-address").Value.String(); got != ":2" {
		t.Errorf("--http-address is %s, want the command line's :2", got)
	}
}
