//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// failoverAfter is that of the specs.
	failoverAfter = "5s"
	// filePartitions are fewer: a program that reads files looks at each.
	filePartitions = 16
	// fresh is how old the last sample of work that has not stopped may be.
	fresh = 2 * time.Second
)

// divide gives the workload this number of partitions.
func (w *workload) divide(count int) {
	w.divides = count
	for key, value := range w.wishes() {
		metav1.SetMetaDataAnnotation(&w.manifest.deployment.ObjectMeta, key, value)
	}
}

// wishes are the user's annotations about partitions.
func (w *workload) wishes() map[string]string {
	return map[string]string{
		assignment.PartitionCountKey: strconv.Itoa(w.divides), assignment.PartitionStrategyKey: "sticky", assignment.PartitionFailoverAfterKey: failoverAfter,
	}
}

// workers returns the last samples of the pods that work on each partition.
func (w *workload) workers() (map[int][]overlap.Record, error) {
	entries, err := os.ReadDir(w.probes)
	if err != nil {
		return nil, err
	}
	workers := map[int][]overlap.Record{}
	for _, e := range entries {
		pod, text, found := strings.Cut(strings.TrimSuffix(e.Name(), overlap.Suffix), "#")
		if !found {
			return nil, fmt.Errorf("%s is not the log of a partition", e.Name())
		}
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		last, err := w.lastSample(pod + "#" + text)
		if err != nil {
			return nil, err
		}
		if last.ID != overlap.None && time.Duration(overlap.Now()-last.After) < fresh {
			last.Pod = pod
			workers[number] = append(workers[number], last)
		}
	}
	return workers, nil
}

// divided waits until each partition is worked on by one pod, and n pods have their shares of them. It returns the last samples of the
// work on each.
func (w *workload) divided(ctx context.Context, n int) (work map[int]overlap.Record) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		work = map[int]overlap.Record{}
		workers, err := w.workers()
		g.Expect(err).NotTo(HaveOccurred())
		shares := map[string]int{}
		for number := range w.divides {
			g.Expect(workers[number]).To(HaveLen(1), "the pods that work on partition %d", number)
			work[number] = workers[number][0]
			shares[work[number].Pod]++
		}
		g.Expect(slices.Collect(maps.Values(shares))).To(And(HaveLen(n), HaveEach(BeElementOf(w.divides/n, (w.divides+n-1)/n))))
	}).WithContext(ctx).Should(Succeed())
	return work
}

// row reads who owns what.
func (w *workload) row(ctx context.Context) string {
	GinkgoHelper()
	owner, err := w.owner(ctx)
	Expect(err).NotTo(HaveOccurred())
	return owner.Annotations[assignment.PartitionOwnersKey]
}

// sharing is the sidecar example with a program that works on the partitions that the files name, and a drain hook that asks it.
func sharing(s *appsv1.DeploymentSpec) {
	pod := &s.Template.Spec
	for i := range pod.InitContainers {
		pod.InitContainers[i].Args = []string{"watch", "--partitions", "--drain-exec=/worker stopped"}
	}
	for i := range pod.Containers {
		pod.Containers[i].Command = []string{program, "share"}
	}
}

var _ = Describe("Partitions", func() {
	It("of a program that reads files move when its drain hook says so, and the others are not disturbed", Label(mainFlow), func(ctx SpecContext) {
		w := prepare(ctx, sidecar, 2, rolling("1", "0"), sharing)
		w.divide(filePartitions)
		w.apply(ctx)
		before, since := w.divided(ctx, 2), overlap.Now()
		w.scale(ctx, "3")
		after := w.divided(ctx, 3)
		stay := map[string]int64{}
		for number, now := range after {
			if was := before[number]; was.Pod == now.Pod {
				stay[now.Pod+"#"+strconv.Itoa(number)] = was.Token
			}
		}
		Expect(stay).To(HaveLen(filePartitions - filePartitions/3))
		for _, r := range w.records(since) {
			if token, stays := stay[r.Pod]; stays {
				Expect(r.Token).To(Equal(token), "the work was disturbed: %s", r)
			}
		}
		row := w.row(ctx)
		w.restart(ctx)
		Expect(w.kubectl(ctx, "rollout", "status", "deployment", name, "--timeout=2m")).Error().NotTo(HaveOccurred())
		w.divided(ctx, 3)
		Expect(w.row(ctx)).To(Equal(row), "a hand-over moves nothing between ids")
	}, SpecTimeout(2*patience))
})
