//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// countChanges are specs of programs that take id and count as flags.
func countChanges() {
	It("gives a new count to programs that take flags, in the same pods", func(ctx SpecContext) {
		w := counting(ctx, assignment.OnCountRestart)
		pods := w.uids(ctx)
		before := w.held(ctx, 3)
		w.expectFlags(ctx, 3)
		for _, n := range []int{5, 2} {
			By(fmt.Sprint("scaling to ", n))
			tell := w.measureTurns(ctx)
			w.scale(ctx, strconv.Itoa(n))
			after := w.held(ctx, n)
			w.expectFlags(ctx, n)
			tell()
			for id, pod := range after {
				if _, had := before[id]; had {
					Expect(pod).To(Equal(before[id]), "id %d", id)
				}
			}
			now := w.uids(ctx)
			for pod, uid := range pods {
				if _, lives := now[pod]; lives {
					Expect(now).To(HaveKeyWithValue(pod, uid))
				}
			}
			before, pods = after, now
		}
		for _, pod := range before {
			found, err := processes(pod)
			Expect(err).NotTo(HaveOccurred())
			watcher := found[assignment.CountWatcher[:15]]
			Expect(watcher).NotTo(BeZero())
			Expect(kilobytes(watcher, "VmRSS")).To(BeNumerically("<=", 8*1024), "resident memory of the watcher")
			Expect(fmt.Sprintf("/proc/%d/root/seen", watcher)).To(BeADirectory())
			Expect(fmt.Sprintf("/proc/%d/root/var/run/secrets/kubernetes.io/serviceaccount/token", watcher)).NotTo(BeAnExistingFile())
		}
		w.verify(ctx)
	}, SpecTimeout(4*patience))

	It("replaces pods that started with another count, a few at a time", func(ctx SpecContext) {
		w := counting(ctx, assignment.OnCountReplace)
		old := w.held(ctx, 3)
		w.expectFlags(ctx, 3)
		start := time.Now()
		w.scale(ctx, "4")
		w.expectFlags(ctx, 4)
		after := w.held(ctx, 4)
		AddReportEntry("replaced", fmt.Sprintf("3 pods in %.1f s", time.Since(start).Seconds()))
		Expect(slices.Collect(maps.Values(after))).NotTo(ContainElement(BeElementOf(slices.Collect(maps.Values(old)))))
		w.verify(ctx)
	}, SpecTimeout(4*patience))

	It("restarts with a count that changes again meanwhile, also if the watcher, the program and the controller are killed", func(ctx SpecContext) {
		w := counting(ctx, assignment.OnCountRestart)
		before := w.held(ctx, 3)
		By("a second change in the middle")
		tell := w.measureTurns(ctx)
		w.scale(ctx, "4")
		w.awaitTurn(ctx, before, 4)
		w.scale(ctx, "3")
		w.expectFlags(ctx, 3)
		Expect(w.held(ctx, 3)).To(Equal(before))
		tell()

		By("killing one watcher, one program and the leader")
		tell = w.measureTurns(ctx)
		w.scale(ctx, "4")
		w.awaitTurn(ctx, before, 4)
		Expect(kill(before[1], assignment.CountWatcher)).To(Succeed())
		Expect(kill(before[2], "fileworker")).To(Succeed())
		leader := &workload{namespace: "idalloc-system"}
		Expect(leader.kubectl(ctx, "delete", "pods", "-l", "app.kubernetes.io/name=idalloc-controller", "--wait=false")).Error().NotTo(HaveOccurred())
		w.expectFlags(ctx, 4)
		expectKept(before, w.held(ctx, 4))
		tell()

		By("a rolling update meanwhile")
		w.scale(ctx, "3")
		w.awaitTurn(ctx, before, 3)
		w.restart(ctx)
		w.expectFlags(ctx, 3)
		w.held(ctx, 3)
		w.verify(ctx)
	}, SpecTimeout(6*patience))

	It("restarts pods whose volumes show the new count a minute late", Serial, func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		w := counting(ctx, assignment.OnCountRestart, onBothNodes, func(s *appsv1.DeploymentSpec) {
			s.Template.Spec.Tolerations = nil // Kubernetes waits for five minutes before it replaces pods of a silent node
		})
		before := w.held(ctx, 3)
		w.expectFlags(ctx, 3)
		late, uids := w.podsOn(ctx, node), w.uids(ctx)
		Expect(late).NotTo(BeEmpty())

		By("suspending the kubelet of " + node + ", which updates the volumes")
		resume := c.stopSecondKubelet()
		w.scale(ctx, "4")
		Eventually(w.pods).WithContext(ctx).Should(ContainElement(And(
			HaveField("Name", BeElementOf(late)), HaveField("Annotations", HaveKeyWithValue(receipt.StartCountKey, "4")),
		)))
		Consistently(func(g Gomega) {
			for _, pod := range late {
				flags, err := flagsOf(pod)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(flags).To(ContainElement("--total-shards=3"), pod)
			}
		}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		resume()
		w.expectFlags(ctx, 4)
		expectKept(before, w.held(ctx, 4))
		now := w.uids(ctx)
		for pod, uid := range uids {
			Expect(now).To(HaveKeyWithValue(pod, uid))
		}
	}, SpecTimeout(6*patience))

	It("goes back to a count that works", func(ctx SpecContext) {
		w := counting(ctx, assignment.OnCountRestart, func(s *appsv1.DeploymentSpec) {
			c := &s.Template.Spec.Containers[0] // it fails if there are 4
			c.Command = append([]string{program, "unless", "--total-shards=4"}, c.Command...)
		})
		before := w.held(ctx, 3)
		w.scale(ctx, "4")
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			told := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Annotations[receipt.TurnKey] == "" })
			g.Expect(told).To(ConsistOf(HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionFalse))))))
		}).WithContext(ctx).Should(Succeed())
		w.scale(ctx, "3")
		w.expectFlags(ctx, 3)
		Expect(w.held(ctx, 3)).To(Equal(before))
	}, SpecTimeout(4*patience))
}

// counting applies three replicas of a program that takes flags.
func counting(ctx context.Context, on string, changes ...change) *workload {
	GinkgoHelper()
	w := prepare(ctx, files, 3, append([]change{assigned, byDefault, func(s *appsv1.DeploymentSpec) {
		s.Template.Annotations = map[string]string{assignment.OnCountKey: on, "inject.idalloc.dev/image": image}
		s.Template.Spec.Containers[0].Args = []string{"--shard=$(IDALLOC_ID)", "--total-shards=$(IDALLOC_COUNT)"}
	}}, changes...)...)
	metav1.SetMetaDataAnnotation(&w.manifest.deployment.ObjectMeta, assignment.SettleKey, "2s")
	w.apply(ctx)
	return w
}

// expectFlags waits until the program of each pod runs with the pod's id and this count.
func (w *workload) expectFlags(ctx context.Context, count int) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		pods, err := w.pods(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(count))
		for _, p := range pods {
			flags, err := flagsOf(p.Name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(flags).To(Equal([]string{"--shard=" + p.Labels[idLabel], "--total-shards=" + strconv.Itoa(count)}), p.Name)
			g.Expect(p.Annotations[receipt.TurnKey]).To(BeEmpty(), p.Name)
		}
	}).WithContext(ctx).Should(Succeed())
}

// flagsOf returns those of the program of a pod.
func flagsOf(pod string) (flags []string, err error) {
	found, err := processes(pod)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", found["fileworker"]))
	if err != nil {
		return nil, err
	}
	for part := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		if bytes.HasPrefix(part, []byte("--")) {
			flags = append(flags, string(part))
		}
	}
	return flags, nil
}

// kill kills a program of a pod. The kernel cuts its name off.
func kill(pod, program string) error {
	found, err := processes(pod)
	if err != nil {
		return err
	}
	return syscall.Kill(found[program[:min(len(program), 15)]], syscall.SIGKILL)
}

// awaitTurn waits until the first pod that runs is told the count.
func (w *workload) awaitTurn(ctx context.Context, of holders, count int) {
	GinkgoHelper()
	Eventually(w.pods).WithContext(ctx).WithPolling(100 * time.Millisecond).Should(ContainElement(And(
		HaveField("Name", BeElementOf(slices.Collect(maps.Values(of)))), HaveField("Annotations", HaveKeyWithValue(receipt.StartCountKey, strconv.Itoa(count))),
	)))
}

// uids returns those of the pods, by their names.
func (w *workload) uids(ctx context.Context) map[string]string {
	GinkgoHelper()
	pods, err := w.pods(ctx)
	Expect(err).NotTo(HaveOccurred())
	uids := map[string]string{}
	for _, p := range pods {
		uids[p.Name] = string(p.UID)
	}
	return uids
}

// measureTurns watches the turns of the pods until tell is called, which reports them.
func (w *workload) measureTurns(ctx context.Context) (tell func()) {
	GinkgoHelper()
	began, ended, start := map[string]time.Duration{}, map[string]time.Duration{}, time.Now()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticks := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-ticks.C:
			}
			pods, err := w.pods(ctx)
			if err != nil {
				continue
			}
			for _, p := range pods {
				_, did := began[p.Name]
				_, over := ended[p.Name]
				switch under := p.Annotations[receipt.TurnKey] != ""; {
				case under && !did:
					began[p.Name] = time.Since(start)
				case !under && did && !over:
					ended[p.Name] = time.Since(start)
				}
			}
		}
	}()
	return func() {
		GinkgoHelper()
		stop()
		<-done
		text := &strings.Builder{}
		for _, pod := range slices.Sorted(maps.Keys(began)) {
			if _, over := ended[pod]; !over {
				ended[pod] = time.Since(start) // its flags are right, and its turn is about to end
			}
			_, _ = fmt.Fprintf(text, "%s from %.1f s to %.1f s after the scale: %.1f s\n", pod, began[pod].Seconds(), ended[pod].Seconds(), (ended[pod] - began[pod]).Seconds())
		}
		AddReportEntry("turns", text.String(), ReportEntryVisibilityAlways)
	}
}
