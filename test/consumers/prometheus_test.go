package consumers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// targets is how many targets there are, scrapes how often each is scraped before the scrapers are compared.
	targets, scrapes = 100, 3
)

func testPrometheus(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	seen := newFleet(t)
	w := deploy(ctx, t, env, "prometheus", 3, prometheus(t, seen))
	seen.divided(ctx, w, 3)
	w.scale(ctx, 5)
	seen.divided(ctx, w, 5)
	w.restart(ctx, 5)
	seen.divided(ctx, w, 5)
	w.scale(ctx, 2)
	seen.divided(ctx, w, 2)
}

// prometheus returns the pod of the example's Deployment. Its configuration has these targets in place of a namespace's pods, scrapes each
// second, and tells the target which shard scrapes it.
func prometheus(t *testing.T, f *fleet) *corev1.PodSpec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t, "examples", "prometheus"), "deployment.yaml"))
	must(t, err)
	var deployment appsv1.Deployment
	must(t, yaml.UnmarshalStrict(text, &deployment))
	spec := &deployment.Spec.Template.Spec
	spec.InitContainers[0].Image = "idalloc" // as the suite calls its image
	spec.Containers[0].Name = container
	// All pods share the machine's ports.
	spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "IDALLOC_HTTP_ADDRESS", Value: "$(POD_IP):8089"})

	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), configuration(t, f), 0o600))
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == "config" {
			spec.Volumes[i].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
		}
	}
	return spec
}

func configuration(t *testing.T, f *fleet) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t, "examples", "prometheus"), "prometheus.yml"))
	must(t, err)
	var c map[string]any
	must(t, yaml.Unmarshal(text, &c))
	jobs, _ := c["scrape_configs"].([]any)
	job, _ := jobs[0].(map[string]any)
	delete(job, "kubernetes_sd_configs")
	job["static_configs"] = []any{map[string]any{"targets": f.addresses, "labels": map[string]string{"__meta_kubernetes_pod_container_port_name": "metrics"}}}
	job["params"] = map[string]any{"shard": []string{"__ID__ of __COUNT__"}}
	c["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s"}
	text, err = yaml.Marshal(c)
	must(t, err)
	return text
}

// fleet is the targets, which note who scrapes them.
type fleet struct {
	addresses []string

	mu sync.Mutex
	by map[string]map[string]int // address, shard: how often
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{by: map[string]map[string]int{}}
	for range targets {
		server := httptest.NewServer(http.HandlerFunc(f.answer))
		t.Cleanup(server.Close)
		f.addresses = append(f.addresses, server.Listener.Addr().String())
	}
	return f
}

func (f *fleet) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[r.Host] == nil {
		f.by[r.Host] = map[string]int{}
	}
	f.by[r.Host][r.URL.Query().Get("shard")]++
	_, _ = fmt.Fprintln(w, "up_and_running 1") // if it fails, the target is scraped again
}

// forget forgets all scrapes so far.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.by)
}

// scraped says whether each target was scraped often enough, and by whom.
func (f *fleet) scraped() (by map[string][]string, enough bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by, enough = map[string][]string{}, len(f.by) == targets
	for target, shards := range f.by {
		for shard, times := range shards {
			by[target] = append(by[target], shard)
			enough = enough && times >= scrapes
		}
	}
	return by, enough
}

// divided waits until so many shards scrape all targets, and checks that each target has exactly one: by what the targets see, and by what
// each Prometheus says of itself.
func (f *fleet) divided(ctx context.Context, w *workload, shards int) {
	w.t.Helper()
	want := map[string]bool{}
	said := map[string][]string{}
	for id := range shards {
		want[fmt.Sprintf("%d of %d", id, shards)] = true
	}
	w.until(ctx, fmt.Sprintf("each Prometheus is one of %d shards", shards), func(ctx context.Context) (bool, error) {
		pods, err := w.namespace.Pods(ctx, w.name)
		clear(said)
		for i := range pods {
			for _, target := range active(ctx, &pods[i]) {
				if !want[target.shard()] {
					return false, nil
				}
				said[target.DiscoveredLabels.Address] = append(said[target.DiscoveredLabels.Address], target.shard())
			}
		}
		return err == nil && len(said) >= targets, err
	})
	for _, target := range f.addresses {
		if len(said[target]) != 1 {
			w.t.Errorf("%s is a target of %q", target, said[target])
		}
	}
	f.forget()
	var by map[string][]string
	w.until(ctx, "each target is scraped", func(context.Context) (enough bool, err error) {
		by, enough = f.scraped()
		return enough, nil
	})
	used := map[string]int{}
	for _, target := range f.addresses {
		if !slices.Equal(by[target], said[target]) {
			w.t.Errorf("%s is scraped by %q, want %q alone", target, by[target], said[target])
		}
		for _, shard := range by[target] {
			used[shard]++
		}
	}
	w.t.Logf("targets by shard: %v", used)
	if !slices.Equal(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(want))) {
		w.t.Errorf("the shards %v scrape, want %v", used, want)
	}
}

// said returns what the program of a pod says at port 9090, nothing while it does not answer.
func said(ctx context.Context, pod *corev1.Pod, path string) []byte {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":9090"+path, http.NoBody)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	defer response.Body.Close()          //nolint:errcheck // a read-only body
	text, _ := io.ReadAll(response.Body) // a part of it is no answer, either
	return text
}

// activeTarget is a target in the answer of Prometheus.
type activeTarget struct {
	DiscoveredLabels struct {
		Address string `json:"__address__"`   //nolint:tagliatelle // Prometheus' label
		Shard   string `json:"__param_shard"` //nolint:tagliatelle // Prometheus' label
	} `json:"discoveredLabels"`
}

func (a activeTarget) shard() string { return a.DiscoveredLabels.Shard }

// active returns what a pod's Prometheus scrapes, nothing while it does not answer.
func active(ctx context.Context, pod *corev1.Pod) []activeTarget {
	var answer struct {
		Data struct {
			ActiveTargets []activeTarget `json:"activeTargets"`
		} `json:"data"`
	}
	_ = json.Unmarshal(said(ctx, pod, "/api/v1/targets?state=active"), &answer)
	return answer.Data.ActiveTargets
}
