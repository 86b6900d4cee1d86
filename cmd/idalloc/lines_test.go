package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/test/apifake"
	"github.com/idalloc/idalloc/test/cases"
)

// The files in testdata show command lines, and how they end. A case is a comment, the word shell, lines, ---- and for each line what it prints. A line
// may begin with variables of the environment. The API server has the Deployment "worker" of two replicas: worker-a has id 0, worker-gone had id 1, and
// worker-b waits. Run the test with -rewrite to write down what is printed now.
func TestCommandLines(t *testing.T) {
	cases.Run(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string {
		t.Helper()
		server := workload(t, 2)
		server.Put(apifake.Pod("worker-b"))
		return (&desk{server, shell(t, server)}).lines
	})
}

// desk is where a person types command lines.
type desk struct {
	server *apifake.Server
	run    func(line string, more ...string) outcome
}

func (d *desk) lines(t *testing.T, of *datadriven.TestData) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(of.Input) {
		line = strings.TrimSpace(line)
		variables, rest, ok := strings.Cut(line, "idalloc ")
		if !ok {
			of.Fatalf(t, "%q is no line of idalloc's", line)
		}
		d.server.Requests()
		var got outcome
		t.Run(line, func(t *testing.T) { // so that its variables end with it
			for name, value := range pairs(variables) {
				t.Setenv(name, value)
			}
			got = d.run(rest)
		})
		if sent := d.server.Requests(); of.Cmd == "refused" && len(sent) > 0 {
			t.Errorf("%s sent %v", line, sent)
		}
		b.WriteString("$ " + line + "\n")
		for _, text := range []string{got.out, got.errors} {
			if text = strings.TrimRight(text, "\n"); text != "" {
				b.WriteString(text + "\n")
			}
		}
		if got.code != 0 {
			b.WriteString("exit code " + strconv.Itoa(got.code) + "\n")
		}
	}
	return b.String()
}

// pairs reads NAME=VALUE before a command line.
func pairs(text string) map[string]string {
	all := map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}
