package inject_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The files in testdata/scenarios are streams, and what becomes of them; go test -rewrite writes them anew. Each result is also injected
// again, which may not change it.
func TestStreams(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			o := inject.Options{All: d.HasArg("all")}
			d.MaybeScanArgs(t, "image", &o.Image)
			var warned strings.Builder
			if d.Cmd == "warnings" {
				o.Warn = func(sentence string) { warned.WriteString(sentence + "\n") }
			}
			result, workloads, err := inject.Stream(d.Input+"\n", o)
			if err != nil {
				return "error: " + err.Error()
			}
			again, same, err := inject.Stream(result, o)
			if err != nil || again != result || len(same) != len(workloads) {
				t.Errorf("injected again: %v %v\n%s", same, err, again)
			}
			if d.Cmd == "warnings" {
				return warned.String()
			}
			if d.Cmd == "names" {
				return strings.Join(workloads, "\n")
			}
			if d.Cmd == "grep" {
				return grep(result, d.CmdArgs[0].Vals...)
			}
			return result
		})
	})
}

// grep returns the lines that have one of these texts.
func grep(text string, texts ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, t := range texts {
			if strings.Contains(line, t) {
				b.WriteString(line)
				break
			}
		}
	}
	return b.String()
}

func template(annotations string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {template: {metadata: {labels: {idalloc.dev/inject: \"true\"}, annotations: {" +
		annotations + "}}, spec: {containers: [{name: main}]}}}\n"
}

func TestFenceAfterIsThatOfTheSidecar(t *testing.T) {
	for after, right := range map[time.Duration]bool{
		allocator.MinFenceAfter: true, allocator.MinFenceAfter - 1: false, assignment.MaxFenceAfter: true, assignment.MaxFenceAfter + 1: false,
	} {
		_, _, err := inject.Stream(template("inject.idalloc.dev/fence-exec: /stop, inject.idalloc.dev/fence-after: "+after.String()), inject.Options{})
		if (err == nil) != right {
			t.Errorf("%s: %v", after, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(template(""))
	f.Add("---\n" + template("inject.idalloc.dev/dir: /x") + "...\n--- {a: &b [*b]}\n")
	f.Add("a: &a {b: c}\nd: {<<: *a}\n")
	f.Fuzz(func(t *testing.T, stream string) {
		for _, all := range []bool{false, true} {
			result, workloads, err := inject.Stream(stream, inject.Options{All: all})
			if err != nil {
				continue
			}
			if len(workloads) == 0 && result != stream {
				t.Errorf("nothing was injected into %q, and it became %q", stream, result)
			}
		}
	})
}
