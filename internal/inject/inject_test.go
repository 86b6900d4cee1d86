package inject_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The files in testdata/scenarios are streams, and what becomes of them; go test -rewrite writes them again. Each result is also injected
// again, which may not change it.
func TestStreams(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			o := inject.Options{All: d.HasArg("all")}
			d.MaybeScanArgs(t, "by", &o.By)
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

func TestFenceAfterIsThatOfTheSidecar(t *testing.T) {
	for after, right := range map[time.Duration]bool{
		allocator.MinFenceAfter: true, allocator.MinFenceAfter - 1: false, assignment.MaxFenceAfter: true, assignment.MaxFenceAfter + 1: false,
	} {
		_, _, err := inject.Stream(workload("inject.idalloc.dev/fence-exec: /stop, inject.idalloc.dev/fence-after: "+after.String(), main), inject.Options{})
		if (err == nil) != right {
			t.Errorf("%s: %v", after, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(workload("", main))
	f.Add("---\n" + workload("inject.idalloc.dev/dir: /x", main) + "...\n--- {a: &b [*b]}\n")
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

// workload is a Deployment that asks for the sidecar. pod is the spec of its pods.
func workload(annotations, pod string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {template: {metadata: {labels: {idalloc.dev/inject: \"true\"}, annotations: {" +
		annotations + "}}, spec: {" + pod + "}}}\n"
}

const (
	main    = "containers: [{name: main}, {name: log}]"
	sidecar = "idalloc"
	watch   = "watch" // its command
)

func TestWhatCannotHaveTheSidecar(t *testing.T) {
	for says, stream := range map[string]string{
		`there is no annotation inject.idalloc.dev/folder`:                       workload("inject.idalloc.dev/folder: /x", main),
		`partitions is "yes": use "true" or "false"`:                             workload(`inject.idalloc.dev/partitions: "yes"`, main),
		`dir is "ids": use an absolute path`:                                     workload("inject.idalloc.dev/dir: ids", main),
		`dir is "/a:b": use an absolute path`:                                    workload(`inject.idalloc.dev/dir: "/a:b"`, main),
		`drain is "exec": use http, or remove it`:                                workload("inject.idalloc.dev/drain: exec", main),
		`containers has an empty name`:                                           workload(`inject.idalloc.dev/containers: "main,"`, main),
		`fence-after and inject.idalloc.dev/fence-exec work only together`:       workload("inject.idalloc.dev/fence-after: 30s", main),
		`/fence-after and inject.idalloc.dev/fence-exec work only together: set`: workload("inject.idalloc.dev/fence-exec: /stop", main),
		`fence-after is "soon": use a duration`:                                  workload("inject.idalloc.dev/fence-after: soon, inject.idalloc.dev/fence-exec: /stop", main),
		`names "web", which is no container`:                                     workload("inject.idalloc.dev/containers: web", main),
		`names "idalloc", which is no container`:                                 workload("inject.idalloc.dev/containers: idalloc", main+", initContainers: [{name: idalloc}]"),
		`requests is "cpu": use NAME=QUANTITY`:                                   workload("inject.idalloc.dev/requests: cpu", main),
		`limits is "cpu=1,,memory=1": use NAME=QUANTITY`:                         workload(`inject.idalloc.dev/limits: "cpu=1,,memory=1"`, main),
		`limits is "memory=48 MiB": use NAME=QUANTITY`:                           workload(`inject.idalloc.dev/limits: memory=48 MiB`, main),
		`limits is "cpu=1,memory=10Mi": the sidecar needs memory=24Mi or more`:   workload(`inject.idalloc.dev/limits: "cpu=1,memory=10Mi"`, main),
		`fence-exec is "/stop 'a b": the quote ' is not closed`:                  workload(`inject.idalloc.dev/fence-after: 30s, inject.idalloc.dev/fence-exec: "/stop 'a b"`, main),
		`fence-exec is " ": it names no program`:                                 workload(`inject.idalloc.dev/fence-after: 30s, inject.idalloc.dev/fence-exec: " "`, main),
		`limits is "": use NAME=QUANTITY`:                                        workload(`inject.idalloc.dev/limits: ""`, main),
		`terminationGracePeriodSeconds is 0`:                                     workload("", main+", terminationGracePeriodSeconds: 0"),
		`container main runs idalloc itself`:                                     workload("", "containers: [{name: main, command: [/bin/idalloc, run, --, x]}]"),
		`container log runs idalloc itself, and two of a pod would act`:          workload("", main+", initContainers: [{name: log, image: 'example.com:5000/idalloc:v1@sha256:0', args: [init]}]"),
		`container helper runs idalloc itself`:                                   workload(`idalloc.dev/injected: "true"`, "containers: [{name: helper, args: [idalloc, watch]}], initContainers: [{name: idalloc, restartPolicy: Always}]"),
		`the pod has a container idalloc of its own`:                             workload("", "containers: [{name: idalloc}]"),
		`a container idalloc of its own: rename it`:                              workload("", main+", initContainers: [{name: idalloc}]"),
		`rename it, because the sidecar has this name`:                           workload(`idalloc.dev/injected: "true"`, "containers: [{name: idalloc}]"),
		`the pod template has no containers`:                                     workload("", "containers: {}"),
		`the pod has a volume idalloc of its own`:                                workload("", main+", volumes: [{name: idalloc}]"),
		`the pod has a volume idalloc-token of its own`:                          workload("", main+", volumes: [{name: data}, {name: idalloc-token}]"),
		`container main sets IDALLOC_DIR or IDALLOC_URL itself`:                  workload("", "containers: [{name: main, env: [{name: IDALLOC_DIR}]}]"),
		`container log sets IDALLOC_DIR or IDALLOC_URL itself`:                   workload("", "containers: [{name: log, env: [{name: IDALLOC_URL}]}]"),
		`the pod runs as shop, and annotation`:                                   workload("inject.idalloc.dev/service-account: ids", main+", serviceAccountName: shop"),
		`label idalloc.dev/inject is "yes": use "true" or "false"`:               strings.Replace(workload("", main), `"true"`, `"yes"`, 1),
	} {
		result, workloads, err := inject.Stream(stream, inject.Options{})
		if err == nil || !strings.Contains(err.Error(), says) || result != "" || workloads != nil {
			t.Errorf("%s\nbecomes %q of %v, %v, want an error with %s", stream, result, workloads, err, says)
		}
	}
}

// A field that is null counts as absent, and a key that comes by a merge counts wherever the merge stands.
func TestNullsAndMerges(t *testing.T) {
	result, _, err := inject.Stream(workload("", main+", serviceAccountName: null"), inject.Options{})
	if err != nil || !strings.Contains(result, "serviceAccountName: idalloc\n") && !strings.Contains(result, "serviceAccountName: idalloc,") {
		t.Errorf("%v\n%s", err, result)
	}
	merged := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, annotations: &asks {idalloc.dev/inject: \"true\"}}\n" +
		"spec: {template: {metadata: {labels: {app: w, <<: *asks}}, spec: {" + main + "}}}\n"
	if _, workloads, err := inject.Stream(merged, inject.Options{}); err != nil || !slices.Equal(workloads, []string{"Deployment/w"}) {
		t.Errorf("%q, %v", workloads, err)
	}
}

// sidecarOf returns the arguments of the sidecar, and the containers that see the id.
func sidecarOf(t *testing.T, stream string) (args, sees []string, order []string) {
	t.Helper()
	result, _, err := inject.Stream(stream, inject.Options{})
	if err != nil {
		t.Fatalf("%s\n%v", stream, err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(result), &d); err != nil {
		t.Fatalf("%s\n%v", result, err)
	}
	pod := d.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		order = append(order, c.Name)
		if c.Name == sidecar {
			args = c.Args
			continue
		}
		if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "IDALLOC_DIR" }) &&
			slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == sidecar && m.ReadOnly }) {
			sees = append(sees, c.Name)
		}
	}
	return args, sees, order
}

// A quota may demand a limit of CPU, and a LimitRange may allow less memory.
func TestTheSidecarsResources(t *testing.T) {
	for annotations, want := range map[string]string{
		"": "cpu 5m memory 24Mi, memory 64Mi",
		"inject.idalloc.dev/limits: 'memory=48Mi,cpu=0.1'":                                     "cpu 5m memory 24Mi, cpu 0.1 memory 48Mi",
		"inject.idalloc.dev/requests: example.com/tokens=1, inject.idalloc.dev/limits: cpu=1k": "example.com/tokens 1, cpu 1k",
	} {
		result, _, err := inject.Stream(workload(annotations, main), inject.Options{})
		var d struct {
			Spec struct {
				Template struct {
					Spec struct {
						InitContainers []struct {
							Resources struct{ Requests, Limits map[string]string }
						}
					}
				}
			}
		}
		if err := errors.Join(err, yaml.Unmarshal([]byte(result), &d)); err != nil {
			t.Fatal(err)
		}
		text := func(amounts map[string]string) string {
			words := make([]string, 0, 2*len(amounts))
			for _, name := range slices.Sorted(maps.Keys(amounts)) {
				words = append(words, name, amounts[name])
			}
			return strings.Join(words, " ")
		}
		r := d.Spec.Template.Spec.InitContainers[0].Resources
		if got := text(r.Requests) + ", " + text(r.Limits); got != want {
			t.Errorf("%s: %s, want %s", annotations, got, want)
		}
	}
}

func TestWhatTheSidecarIsTold(t *testing.T) {
	const first = "initContainers: [{name: setup}, {name: migrate}], " + main
	for name, tc := range map[string]struct {
		annotations, pod  string
		args, sees, order []string
	}{
		"nothing": {"", main, []string{watch}, []string{"main", "log"}, []string{sidecar, "main", "log"}},
		"its own defaults": {`inject.idalloc.dev/dir: /var/run/idalloc, inject.idalloc.dev/partitions: "false"`, main,
			[]string{watch}, []string{"main", "log"}, []string{sidecar, "main", "log"}},
		"all of it": {`inject.idalloc.dev/dir: /ids, inject.idalloc.dev/drain: http, inject.idalloc.dev/partitions: "true", inject.idalloc.dev/fence-after: 30s, inject.idalloc.dev/fence-exec: /stop`, main,
			[]string{watch, "--dir=/ids", "--drain=http", "--partitions", "--fence-after=30s", "--fence-exec=/stop"}, []string{"main", "log"}, []string{sidecar, "main", "log"}},
		"one container":             {"inject.idalloc.dev/containers: log", main, []string{watch}, []string{"log"}, []string{sidecar, "main", "log"}},
		"behind what need not know": {"", first, []string{watch}, []string{"main", "log"}, []string{"setup", "migrate", sidecar, "main", "log"}},
		"before the first that needs it": {`inject.idalloc.dev/containers: "migrate,main"`, first,
			[]string{watch}, []string{"migrate", "main"}, []string{"setup", sidecar, "migrate", "main", "log"}},
		"before all": {"inject.idalloc.dev/containers: setup", first, []string{watch}, []string{"setup"}, []string{sidecar, "setup", "migrate", "main", "log"}},
	} {
		args, sees, order := sidecarOf(t, workload(tc.annotations, tc.pod))
		if !slices.Equal(args, tc.args) || !slices.Equal(sees, tc.sees) || !slices.Equal(order, tc.order) {
			t.Errorf("%s: idalloc %q beside %q of %q, want %q beside %q of %q", name, args, sees, order, tc.args, tc.sees, tc.order)
		}
	}
}

func TestWhoseRollingUpdateWouldWaitForEver(t *testing.T) {
	for spec, warns := range map[string]bool{
		"":                                true, // one replica, of which 25% may be unavailable: none
		"replicas: 3":                     true,
		"replicas: 4":                     false,
		"replicas: 0":                     false,
		"strategy: {type: Recreate}":      false,
		"strategy: {type: RollingUpdate}": true,
		"strategy: {rollingUpdate: {maxUnavailable: 1}}":                           false,
		"replicas: 9, strategy: {rollingUpdate: {maxUnavailable: 0}}":              true,
		"replicas: 9, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 0}}": false,
	} {
		for _, drain := range []bool{false, true} {
			annotations := ""
			if drain {
				annotations = "inject.idalloc.dev/drain: http"
			}
			stream := strings.Replace(workload(annotations, main), "spec: {template", "spec: {"+spec+", template", 1)
			stream = strings.Replace(stream, "{, ", "{", 1)
			warned := ""
			_, _, err := inject.Stream(stream, inject.Options{Warn: func(sentence string) { warned = sentence }})
			if want := warns && !drain; err != nil || (warned != "") != want || (want && !strings.Contains(warned, "would wait for ever")) {
				t.Errorf("%s: %v, warned %q", stream, err, warned)
			}
		}
	}
}
