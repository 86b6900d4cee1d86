package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/pidlock"
	"github.com/idalloc/idalloc/test/apifake"
)

// The environment does not have the name.
func TestASecondProcessOfAPodThatAFlagNamesIsRefused(t *testing.T) {
	t.Setenv("POD_NAME", "")
	uid := rand.Text()
	leave, err := pidlock.Hold("worker-x", uid)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	run := shell(t, apifake.New(t))
	for _, line := range []string{"init --dir=" + t.TempDir(), "watch --http-address= --dir=" + t.TempDir(), "run --http-address= -- /bin/true"} {
		command, rest, _ := strings.Cut(line, " ")
		says(t, run(command+" --pod-name=worker-x --pod-namespace=shop --pod-uid="+uid+" "+rest), cli.ExitError, "", "another process of pod worker-x")
	}
}
