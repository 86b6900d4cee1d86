package consumers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

// wrapped returns a pod in which idalloc run starts a program, as docs/recipes.md says.
func wrapped(command ...string) *corev1.PodSpec {
	c := suite.Container(container)
	c.Args = append([]string{"run", "--http-address=$(POD_IP):8089", "--"}, command...)
	return suite.PodSpec(c)
}

// tool builds a program once for all runs.
func tool(ctx context.Context, t *testing.T, program string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, folder(t, "hack", "tool"), program) //nolint:gosec // the project's own script
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
		tool(ctx, t, "github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent@v1.151.0"), "-promscrape.cluster.memberNum={id}", "-promscrape.cluster.membersCount={count}", "-promscrape.config="+file,
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

// testKubeStateMetrics has kube-state-metrics divide ConfigMaps. Each must be counted by one pod.
func testKubeStateMetrics(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	const objects = 40
	program := tool(ctx, t, "k8s.io/kube-state-metrics/v2@v2.18.0")
	w := deploy(ctx, t, env, "kube-state-metrics", 2, wrapped(
		program, "--shard={id}", "--total-shards={count}", "--kubeconfig=$(KUBECONFIG)", "--namespaces=$(POD_NAMESPACE)", "--resources=configmaps",
		"--host=$(POD_IP)", "--port=9090", "--telemetry-host=$(POD_IP)", "--telemetry-port=9091",
	))
	must(t, w.namespace.Grant(ctx, "reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}))
	_, err := env.Client.RbacV1().RoleBindings(w.namespace.Name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "programs-read"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: suite.Account, Namespace: w.namespace.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
	}, metav1.CreateOptions{})
	must(t, err)
	for i := range objects {
		_, err := env.Client.CoreV1().ConfigMaps(w.namespace.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "object-" + strconv.Itoa(i)}}, metav1.CreateOptions{})
		must(t, err)
	}
	w.divided(ctx, 2, objects, configMaps)
	w.scale(ctx, 3)
	w.divided(ctx, 3, objects, configMaps)
}

// configMaps returns the names of the test's ConfigMaps that a pod counts, none while it does not answer.
func configMaps(ctx context.Context, pod *corev1.Pod) (names []string) {
	text := said(ctx, pod, "/metrics")
	for _, m := range regexp.MustCompile(`(?m)^kube_configmap_info\{[^}]*configmap="(object-\d+)"`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}
