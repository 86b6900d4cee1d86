package consumers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// wrapped returns a pod in which idalloc run starts a program, as docs/recipes.md says.
func wrapped(command ...string) *corev1.PodSpec {
	c := suite.Container(container)
	c.Args = append([]string{"run", "--http-address=$(POD_IP):8089", "--"}, command...)
	return suite.PodSpec(c)
}

// vmagent builds the program once for all runs.
func vmagent(ctx context.Context, t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, folder(t, "hack", "tool"), "github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent@v1.151.0") //nolint:gosec // the project's own script
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	must(t, err)
	return strings.TrimSpace(string(path))
}

// testVmagent has vmagents divide targets. Each must be scraped by one pod.
func testVmagent(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	seen, dir := newFleet(t), t.TempDir()
	config, err := yaml.Marshal(map[string]any{
		"scrape_configs": []any{map[string]any{"job_name": "fleet", "static_configs": []any{map[string]any{"targets": seen.addresses}}}},
	})
	must(t, err)
	file := filepath.Join(dir, "scrape.yml")
	must(t, os.WriteFile(file, config, 0o600))
	w := deploy(ctx, t, env, "vmagent", 2, wrapped(
		vmagent(ctx, t), "-promscrape.cluster.memberNum={id}", "-promscrape.cluster.membersCount={count}", "-promscrape.config="+file,
		"-httpListenAddr=$(POD_IP):9090", "-remoteWrite.url=http://127.0.0.1:1/", "-remoteWrite.tmpDataPath="+dir+"/$(POD_NAME)",
	))
	scraped := func(ctx context.Context, pod *corev1.Pod) (names []string) {
		for _, target := range active(ctx, pod) {
			names = append(names, target.DiscoveredLabels.Address)
		}
		return names
	}
	w.divided(ctx, 2, targets, scraped)
	w.scale(ctx, 3)
	w.divided(ctx, 3, targets, scraped)
}

// divided waits until each of so many objects is worked on by one of so many pods, and by no other. names returns the objects of a pod.
func (w *workload) divided(ctx context.Context, shards, objects int, names func(context.Context, *corev1.Pod) []string) {
	w.t.Helper()
	w.until(ctx, fmt.Sprintf("each of %d objects belongs to one of %d pods", objects, shards), func(ctx context.Context) (bool, error) {
		pods, err := w.namespace.Pods(ctx, w.name)
		owners, idle := map[string]int{}, 0
		for i := range pods {
			all := names(ctx, &pods[i])
			for _, name := range all {
				owners[name]++
			}
			if len(all) == 0 {
				idle++
			}
		}
		for _, n := range owners {
			if n != 1 {
				return false, err
			}
		}
		return len(pods) == shards && idle == 0 && len(owners) == objects, err
	})
}
