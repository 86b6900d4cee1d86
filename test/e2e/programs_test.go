//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// looks is how often the judge looks at all replicas.
	looks = 250 * time.Millisecond
	// evenFor is how long each object must have had one worker before a change counts as over.
	evenFor = 3 * time.Second
	// objects is how many ConfigMaps kube-state-metrics divides, and targets how many pods vmagent does.
	objects, targets = 40, 10
)

// stranger is a program that is not ours, built unchanged, and what the judge asks its replicas.
type stranger struct {
	// name is the one of its manifest in docs/uses.md.
	name string
	port string
	path string
	// works reads from the answer which objects a replica works on.
	works func(answer io.Reader) []string
	// build returns the program's file.
	build func(ctx context.Context, out string) string
}

func kubeStateMetrics() stranger {
	return stranger{"kube-state-metrics", "8080", "/metrics", countedConfigMaps, func(ctx context.Context, out string) string {
		return built(ctx, out, "go", "-C", "../../hack/recipes", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "k8s.io/kube-state-metrics/v2")
	}}
}

func vmagent() stranger {
	return stranger{"vmagent", "8429", "/api/v1/targets", scrapedPods, func(ctx context.Context, out string) string {
		return built(ctx, out, "../../hack/tool", "github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent@v1.151.0")
	}}
}

// building bounds the build of such a program from its modules.
const building = 20 * time.Minute

// programs are specs of what happens to what programs divide by id and count. The judge prints for how long each object had no worker, or two.
func programs() {
	DescribeTable("divides its work again after each change", func(ctx SpecContext, p stranger, onCountChange string) {
		u := p.start(ctx, onCountChange)
		// The variables are of the count when the container started. Where nothing else follows the count, all pods are replaced.
		scaled := func(ctx context.Context, n string) {
			u.scale(ctx, "deployment", n)
			if onCountChange == "keep" {
				u.restart(ctx, "deployment")
			}
		}
		u.changes(ctx, "deployment", scaled)
	},
		Entry("kube-state-metrics, after a rolling restart", Label(mainFlow), kubeStateMetrics(), "keep", SpecTimeout(5*patience+building)),
		Entry("vmagent, after a rolling restart", vmagent(), "keep", SpecTimeout(5*patience+building)),
		Entry("kube-state-metrics, restarted in place", kubeStateMetrics(), "restart", SpecTimeout(5*patience+building)),
		Entry("vmagent, restarted in place", vmagent(), "restart", SpecTimeout(5*patience+building)),
		Entry("kube-state-metrics, replaced", kubeStateMetrics(), "replace", SpecTimeout(5*patience+building)),
	)

	It("has beside it kube-state-metrics in a StatefulSet, which shards by itself", func(ctx SpecContext) {
		u := kubeStateMetrics().prepare(ctx)
		// What the examples of kube-state-metrics have: it finds its ordinal by its name, and follows the StatefulSet's count.
		manifest := strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "idalloc.dev/assign: controller", "other: none",
			"--shard=$(IDALLOC_ID)", "--pod=$(POD)", "--total-shards=$(IDALLOC_COUNT)", "--pod-namespace="+u.namespace,
			"          args:", "          env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n          args:").Replace(u.manifest(ctx))
		Expect(u.kubectlIn(ctx, manifest, "apply", "-f", "-")).Error().NotTo(HaveOccurred())
		u.changes(ctx, "statefulset", func(ctx context.Context, n string) { u.scale(ctx, "statefulset", n) })
	}, SpecTimeout(5*patience+building))

	It("has beside it kube-state-metrics under idalloc run, which restarts it for a new count", func(ctx SpecContext) {
		u := kubeStateMetrics().prepare(ctx)
		Expect(u.kubectlIn(ctx, u.wrapped(ctx), "apply", "-f", "-")).Error().NotTo(HaveOccurred())
		u.changes(ctx, "deployment", func(ctx context.Context, n string) { u.scale(ctx, "deployment", n) })
	}, SpecTimeout(5*patience+building))
}

// judged is such a program under the judge.
type judged struct {
	*use
	stranger
	mutex sync.Mutex
	judge judge
}

// start applies the manifest of docs/uses.md.
func (p stranger) start(ctx context.Context, onCountChange string) *judged {
	GinkgoHelper()
	u := p.prepare(ctx)
	const replaced = "        idalloc.dev/on-count-change: replace\n"
	manifest := u.manifest(ctx)
	Expect(strings.Count(manifest, replaced)).To(Equal(1))
	manifest = strings.Replace(manifest, replaced, "        idalloc.dev/on-count-change: "+onCountChange+"\n        inject.idalloc.dev/image: "+image+"\n", 1)
	if onCountChange != "keep" {
		manifest = strings.NewReplacer(
			"    spec:\n", "    spec:\n      securityContext: {runAsUser: 65532}\n", // the image says no user
			"kind: Deployment\nmetadata:\n", "kind: Deployment\nmetadata:\n  annotations: {idalloc.dev/settle-after: 2s}\n").Replace(manifest)
	}
	Expect(u.kubectlIn(ctx, manifest, "apply", "-f", "-")).Error().NotTo(HaveOccurred())
	return u
}

// prepare builds the program, and makes its account and what it divides.
func (p stranger) prepare(ctx context.Context) *judged {
	GinkgoHelper()
	u := &judged{use: newUse(ctx, p.name), stranger: p}
	dir := GinkgoT().TempDir()
	load(ctx, "idalloc/"+p.name+":current", p.build(ctx, filepath.Join(dir, p.name)))
	_, err := client.CoreV1().ServiceAccounts(u.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: p.name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().RoleBindings(u.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: p.name, Namespace: u.namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	if p.name == kubeStateMetrics().name {
		u.judge.objects = u.configMaps(ctx)
	} else {
		u.judge.objects = u.fleet(ctx)
	}
	return u
}

// configMaps makes what kube-state-metrics divides.
func (u *judged) configMaps(ctx context.Context) (names []string) {
	GinkgoHelper()
	for i := range objects {
		name := "object-" + strconv.Itoa(i)
		_, err := client.CoreV1().ConfigMaps(u.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		names = append(names, name)
	}
	return names
}

// fleet starts the pods that vmagent scrapes.
func (u *judged) fleet(ctx context.Context) (names []string) {
	GinkgoHelper()
	fleet := &use{workload: workload{namespace: u.namespace}, name: "name"}
	fleet.apply(ctx)
	Expect(u.kubectl(ctx, "scale", "deployment", fleet.name, "--replicas="+strconv.Itoa(targets))).Error().NotTo(HaveOccurred())
	fleet.lines(ctx, targets)
	pods, err := fleet.running(ctx)
	Expect(err).NotTo(HaveOccurred())
	for id, pod := range pods {
		names = append(names, pod+" "+id)
	}
	return names
}

// manifest is the one of docs/uses.md, with the image of the suite. kube-state-metrics counts the ConfigMaps of the namespace alone.
func (u *judged) manifest(ctx context.Context) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(usesFolder, u.stranger.name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	text := regexp.MustCompile(`image: .*`).ReplaceAllString(string(content), "image: docker.io/idalloc/"+u.stranger.name+":current")
	text = strings.Replace(text, "http://victoria-metrics:8428", sink(ctx), 1)
	return strings.Replace(text, "            - --total-shards", "            - --namespaces="+u.namespace+"\n            - --resources=configmaps\n            - --total-shards", 1)
}

// sink starts a server that takes what vmagent writes, because vmagent waits for that when it ends. It returns an address that pods reach.
func sink(ctx context.Context) string {
	GinkgoHelper()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	host := list.Items[0].Status.Addresses[slices.IndexFunc(list.Items[0].Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	Expect(server.Listener.Close()).To(Succeed())
	server.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host.Address, "0"))
	Expect(err).NotTo(HaveOccurred())
	server.Start()
	DeferCleanup(server.Close)
	return server.URL
}

// wrapped is config/examples/run with the program in the place of its own.
func (u *judged) wrapped(ctx context.Context) string {
	GinkgoHelper()
	text, err := u.kubectl(ctx, "kustomize", "../../config/examples/run")
	Expect(err).NotTo(HaveOccurred())
	args := []string{"/" + u.stranger.name, "--shard={id}", "--total-shards={count}", "--namespaces=" + u.namespace, "--resources=configmaps"}
	text = regexp.MustCompile(`(?s)- args:\n( +)- sh\n.*?( +command:)`).ReplaceAllString(text, "- args:\n$1- '"+strings.Join(args, "'\n$1- '")+"'\n$2")
	return strings.NewReplacer("worker-run", u.stranger.name, "app.kubernetes.io/name: worker", "app: "+u.stranger.name, "runAsNonRoot: true", "runAsUser: 65532", "replicas: 5", "replicas: 3",
		"ghcr.io/idalloc/idalloc:v0.1.0", image, "docker.io/library/busybox:1.37", "docker.io/idalloc/"+u.stranger.name+":current").Replace(text)
}

// changes scales the program from 3 replicas to 5 and to 2, deletes a pod and rolls out, and prints after each change what the judge has seen.
func (u *judged) changes(ctx context.Context, kind string, scaled func(ctx context.Context, n string)) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() { u.lookAll(ctx) })
	defer over.Wait()
	defer stop()
	u.settled(ctx, 3)
	for _, c := range []struct {
		what   string
		pods   int
		change func()
	}{
		{"3 to 5", 5, func() { scaled(ctx, "5") }},
		{"5 to 2", 2, func() { scaled(ctx, "2") }},
		{"a pod is deleted", 2, func() { u.end(ctx, u.anyPod(ctx)) }},
		{"a rolling update", 2, func() { u.restart(ctx, kind) }},
	} {
		By(c.what)
		u.mutex.Lock()
		u.judge.begin()
		u.mutex.Unlock()
		began := time.Now()
		c.change()
		u.settled(ctx, c.pods)
		u.mutex.Lock()
		reportf(c.what, "each object has one worker after %.1f s; %s", u.judge.uneven.Sub(began).Seconds(), &u.judge)
		u.mutex.Unlock()
	}
}

// settled waits until there are n pods, all of them Ready, and each object has had one worker for a while.
func (u *judged) settled(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		pods, err := u.all(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(n))
		for i := range pods {
			g.Expect(pods[i].DeletionTimestamp).To(BeNil())
			g.Expect(pods[i].Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
		}
		u.mutex.Lock()
		defer u.mutex.Unlock()
		g.Expect(u.judge.even()).To(BeNumerically(">=", evenFor), "workers of each object: %v", u.judge.workers)
	}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
}

func (u *judged) all(ctx context.Context) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(u.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + u.stranger.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (u *judged) anyPod(ctx context.Context) string {
	GinkgoHelper()
	pods, err := u.all(ctx)
	Expect(err).NotTo(HaveOccurred())
	return pods[0].Name
}

// scale does what an HPA does, and waits until the pods that stay are available.
func (u *judged) scale(ctx context.Context, kind, n string) {
	GinkgoHelper()
	Expect(u.kubectl(ctx, "scale", kind, u.stranger.name, "--replicas="+n)).Error().NotTo(HaveOccurred())
	Expect(u.kubectl(ctx, "rollout", "status", kind, u.stranger.name, "--timeout=2m")).Error().NotTo(HaveOccurred())
}

func (u *judged) restart(ctx context.Context, kind string) {
	GinkgoHelper()
	Expect(u.kubectl(ctx, "rollout", "restart", kind, u.stranger.name)).Error().NotTo(HaveOccurred())
	Expect(u.kubectl(ctx, "rollout", "status", kind, u.stranger.name, "--timeout=4m")).Error().NotTo(HaveOccurred())
}

// lookAll shows the judge all replicas until ctx ends.
func (u *judged) lookAll(ctx context.Context) {
	for ticks := time.Tick(looks); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		pods, err := u.all(ctx)
		if err != nil {
			continue // the next look says what lasted
		}
		workers := u.workers(ctx, pods)
		u.mutex.Lock()
		u.judge.look(time.Now(), workers)
		u.mutex.Unlock()
	}
}

// workers asks all replicas at once how many of them work on each object. One that does not answer works on nothing.
func (u *judged) workers(ctx context.Context, pods []corev1.Pod) map[string]int {
	ctx, stop := context.WithTimeout(ctx, 4*looks)
	defer stop()
	workers := map[string]int{}
	var mutex sync.Mutex
	var all sync.WaitGroup
	for i := range pods {
		if address := pods[i].Status.PodIP; address != "" {
			all.Go(func() {
				works := u.ask(ctx, address)
				mutex.Lock()
				defer mutex.Unlock()
				for _, object := range works {
					workers[object]++
				}
			})
		}
	}
	all.Wait()
	return workers
}

func (u *judged) ask(ctx context.Context, address string) []string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, u.port)+u.path, http.NoBody)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close() //nolint:errcheck // read only
	return u.works(response.Body)
}

// built runs a command that builds a program, and returns the program's file: what the command printed last, or out.
func built(ctx context.Context, out string, command ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // commands of this file
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), GinkgoWriter
	printed, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred())
	if path := strings.TrimSpace(string(printed)); path != "" {
		return path
	}
	return out
}

// countedConfigMaps reads the metrics of kube-state-metrics.
func countedConfigMaps(answer io.Reader) (names []string) {
	named := regexp.MustCompile(`^kube_configmap_info\{.*configmap="(object-\d+)"`)
	lines := bufio.NewScanner(answer)
	for lines.Scan() {
		if m := named.FindStringSubmatch(lines.Text()); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// scrapedPods reads vmagent's list of targets: the pods of the fleet and the id that each has as a label of its metrics.
func scrapedPods(answer io.Reader) (names []string) {
	var list struct {
		Data struct {
			ActiveTargets []struct {
				DiscoveredLabels map[string]string `json:"discoveredLabels"`
				Labels           map[string]string `json:"labels"`
			} `json:"activeTargets"`
		} `json:"data"`
	}
	if json.NewDecoder(answer).Decode(&list) != nil {
		return nil
	}
	for _, target := range list.Data.ActiveTargets {
		if target.DiscoveredLabels["__meta_kubernetes_pod_label_app"] == "name" {
			names = append(names, target.DiscoveredLabels["__meta_kubernetes_pod_name"]+" "+target.Labels["instance_id"])
		}
	}
	return names
}
