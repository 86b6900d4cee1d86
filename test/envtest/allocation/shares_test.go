package allocation

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// queues is the number of partitions in these specs.
const queues = 8

// consumes is a command that writes when its work on partitions starts, and when it has stopped.
const consumes = `say() { echo "$1 $POD_NAME $2" >> DIARY; }; trap 'say stop "$IDALLOC_PARTITIONS"; exit 0' TERM; ` +
	`test "$1" = "$IDALLOC_PARTITIONS" && say start "$1"; while :; do sleep 0.05; done`

// sharing returns a Deployment whose workload has partitions.
func sharing(replicas int32, spec *corev1.PodSpec) *appsv1.Deployment {
	d := suite.Deployment("worker", replicas, spec)
	d.Annotations = map[string]string{assignment.PartitionCountKey: strconv.Itoa(queues)}
	return d
}

// consumed replays the diary. It returns who works on which partition now, and fails if two ever did.
func (w *workload) consumed() map[int]string {
	GinkgoHelper()
	f, err := os.Open(w.diary())
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(f.Close()).To(Succeed()) }()
	works := map[int]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		what := strings.Fields(lines.Text())
		Expect(what).To(HaveLen(3))
		set, err := placement.Parse(what[2], queues)
		Expect(err).NotTo(HaveOccurred())
		for k := range set.All() {
			switch what[0] {
			case "start":
				Expect(works).NotTo(HaveKey(k), "%s: two commands work on partition %d", lines.Text(), k)
				works[k] = what[1]
			case "stop":
				Expect(works).To(HaveKeyWithValue(k, what[1]))
				delete(works, k)
			}
		}
	}
	return works
}

// shared waits until n pods work on all partitions, each on as many as any other or on one more, as HTTP says.
func (w *workload) shared(ctx SpecContext, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		works := w.consumed()
		g.Expect(works).To(HaveLen(queues))
		live, err := w.live(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live).To(HaveLen(n))
		for pod, id := range live {
			owned := id.Partitions.Owned()
			g.Expect(owned.Len()).To(BeNumerically("~", queues/n, 1))
			for k := range owned.All() {
				g.Expect(works).To(HaveKeyWithValue(k, pod))
			}
		}
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("partitions of a workload", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, store.Deployment)
		DeferCleanup(os.RemoveAll, w.scratch())
	})

	for _, how := range []string{"restart", "signal"} {
		It("are each worked on by one command at a time, with --on-partitions="+how, Label(nightly), func(ctx SpecContext) {
			spec := w.wrapSpec(consumes, "--on-partitions="+how, "--dir", "/ids")
			suite.Share(spec, "/ids")
			args := spec.Containers[0].Command
			args[len(args)-2] = "{partitions}"
			if how == "signal" { // the command writes what it works on when that changes
				spec.Containers[0].Command = w.signalled(args)
			}
			Expect(w.Create(ctx, sharing(2, spec))).To(Succeed())
			w.shared(ctx, 2)
			Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
			w.shared(ctx, 3)
			Expect(w.Scale(ctx, store.Deployment, "worker", 1)).To(Succeed())
			w.shared(ctx, 1)
		})
	}

	It("stop one by one when the program says so", func(ctx SpecContext) {
		Expect(w.Create(ctx, sharing(1, w.watchSpec("--partitions", "--drain=http")))).To(Succeed())
		first := w.owning(ctx, 1, queues)
		Expect(w.Scale(ctx, store.Deployment, "worker", 2)).To(Succeed())
		var stopping identity.Identity
		Eventually(func(g Gomega) {
			live, err := w.live(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			stopping = live[first[0]]
			g.Expect(stopping.Partitions.Stopping().Len()).To(Equal(queues / 2))
			g.Expect(stopping.Partitions.Owned().Len()).To(Equal(queues / 2))
		}).WithContext(ctx).Should(Succeed())
		p := stopping.Partitions
		Expect(w.report(ctx, first[0], p.Stopping().String(), p.Stop+1)).To(Equal(http.StatusConflict))
		Expect(w.report(ctx, first[0], p.Owned().String(), p.Stop)).To(Equal(http.StatusConflict))
		Expect(w.report(ctx, first[0], p.Stopping().String(), p.Stop)).To(Equal(http.StatusNoContent))
		Eventually(func(g Gomega) {
			live, err := w.live(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(live).To(HaveLen(2))
			for pod, id := range live {
				want := p.Stopping()
				if pod == first[0] {
					want = p.Owned()
				}
				g.Expect(id.Partitions.Owned().String()).To(Equal(want.String()))
			}
		}).WithContext(ctx).Should(Succeed())
		Expect(w.report(ctx, first[0], p.Stopping().String(), p.Stop)).To(Equal(http.StatusConflict), "the stop is over")
	})
})

// signalled returns a command line whose command takes on more partitions at SIGHUP.
func (w *workload) signalled(line []string) []string {
	const script = `mine=$1; say() { echo "$1 $POD_NAME $2" >> DIARY; }; now() { sed 's/.*"owned":"\([^"]*\)".*/\1/' /ids/identity.json; }; ` +
		`trap 'say stop "$mine"; exit 0' TERM; ` +
		`trap 'say stop "$mine"; mine=$(now); say start "$mine"' HUP; ` +
		`say start "$mine"; while :; do sleep 0.05; done`
	line = append([]string(nil), line...)
	for i, arg := range line {
		if arg == "-c" {
			line[i+1] = strings.ReplaceAll(script, "DIARY", w.diary())
		}
	}
	return line
}

// watchSpec has one container, which works on nothing, under a watcher.
func (w *workload) watchSpec(flags ...string) *corev1.PodSpec {
	spec := w.podSpec()
	watcher := &spec.Containers[1]
	watcher.Command = append([]string{env.Binary, "watch", "--dir", "/ids", "--http-address", "$(POD_IP):8089"}, flags...)
	spec.Containers, spec.InitContainers = []corev1.Container{*watcher}, nil
	return spec
}

// owning waits until n pods own this many partitions together, and returns their names.
func (w *workload) owning(ctx SpecContext, n, partitions int) []string {
	GinkgoHelper()
	var names []string
	Eventually(func(g Gomega) {
		live, err := w.live(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live).To(HaveLen(n))
		all := 0
		for _, id := range live {
			all += id.Partitions.Owned().Len()
		}
		g.Expect(all).To(Equal(partitions))
		names = names[:0]
		for name := range maps.Keys(live) {
			names = append(names, name)
		}
	}).WithContext(ctx).Should(Succeed())
	return names
}

// report says that a pod's program has stopped its work on partitions, and returns the answer's code.
func (w *workload) report(ctx context.Context, pod, partitions string, stop int) int {
	GinkgoHelper()
	return w.post(ctx, pod, "/v1/drained?partitions="+partitions+"&stop="+strconv.Itoa(stop))
}

// post posts to a pod's watcher, and returns the answer's code.
func (w *workload) post(ctx context.Context, pod, path string) int {
	GinkgoHelper()
	url := "http://" + net.JoinHostPort(w.pod(ctx, pod).Status.PodIP, "8089") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	dir, err := env.Node.Volume(w.Name, pod, "shared-0")
	Expect(err).NotTo(HaveOccurred())
	secret, err := os.ReadFile(filepath.Join(dir, "drain-secret")) //nolint:gosec // below the node's directory
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Idalloc-Drain-Secret", strings.TrimSpace(string(secret)))
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	return resp.StatusCode
}
