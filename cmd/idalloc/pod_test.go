package main

import (
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
)

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
