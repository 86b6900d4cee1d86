//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/overlap"
)

const idLabel = "idalloc.dev/instance-id"

// holders is pod by id.
type holders map[int]string

// id returns the id of a pod, or overlap.None.
func (h holders) id(pod string) int {
	for id, p := range h {
		if p == pod {
			return id
		}
	}
	return overlap.None
}

// held waits until n pods are Ready, nothing else of the workload is alive, and the ids 0 to n-1 are
// held once each by the word of the assignment, of the labels, and of the programs themselves.
func (w *workload) held(ctx context.Context, n int) holders {
	GinkgoHelper()
	var h holders
	Eventually(func(g Gomega, ctx context.Context) {
		deploy, err := w.deployment(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		status := deploy.Status
		g.Expect(status.ObservedGeneration).To(Equal(deploy.Generation))
		g.Expect([]int32{status.Replicas, status.UpdatedReplicas, status.ReadyReplicas}).To(HaveEach(BeEquivalentTo(n)), "replicas, updated, ready")

		pods, err := w.pods(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		alive := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		g.Expect(alive).To(HaveLen(n), "pods that are not Failed")

		h = w.assignment(ctx, g)
		maps.DeleteFunc(h, func(id int, _ string) bool { return id >= n }) // those go with the next write
		g.Expect(slices.Sorted(maps.Keys(h))).To(Equal(upTo(n)), "the ids of the assignment")
		for _, p := range alive {
			id := h.id(p.Name)
			g.Expect(p.DeletionTimestamp).To(BeNil(), p.Name+" is Terminating")
			g.Expect(id).NotTo(Equal(overlap.None), p.Name+" has no id in "+fmt.Sprint(h))
			g.Expect(p.Labels).To(HaveKeyWithValue(idLabel, strconv.Itoa(id)), p.Name)
			if w.divides > 0 {
				continue // it logs its partitions
			}
			last, err := w.lastSample(p.Name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(last.ID).To(Equal(id), "what "+p.Name+" says about itself")
			g.Expect(last.Count).To(Equal(n), "the count that "+p.Name+" works with")
		}
	}).WithContext(ctx).Should(Succeed())
	return h
}

// assignment reads it as the documentation says.
func (w *workload) assignment(ctx context.Context, g Gomega) holders {
	text, err := w.kubectl(ctx, "get", "deploy", name, "-o", `jsonpath={.metadata.annotations.idalloc\.dev/assignment}`)
	g.Expect(err).NotTo(HaveOccurred())
	h := holders{}
	g.Expect(json.Unmarshal([]byte(text), &h)).To(Succeed(), "the assignment %q", text)
	return h
}

// lastSample returns what the program of a pod logged last, and no id if it was ended before it logged anything. It reads the end of the log only.
func (w *workload) lastSample(pod string) (overlap.Record, error) {
	const enough = 4096
	f, err := os.Open(filepath.Join(w.probes, pod+overlap.Suffix)) //nolint:gosec // a directory of the test
	if err != nil {
		return overlap.Record{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return overlap.Record{}, err
	}
	tail := make([]byte, min(size, enough))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return overlap.Record{}, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	if end < 0 {
		return overlap.Record{ID: overlap.None}, nil
	}
	lines := bytes.Split(tail[:end], []byte("\n"))
	return overlap.Parse(string(lines[len(lines)-1]))
}

func upTo(n int) []int {
	ids := make([]int, 0, n)
	for i := range n {
		ids = append(ids, i)
	}
	return ids
}

// expectNoOverlap checks the logs of all pods that the workload ever had.
func (w *workload) expectNoOverlap() {
	GinkgoHelper()
	records, err := overlap.Read(w.probes)
	Expect(err).NotTo(HaveOccurred())
	report, err := overlap.Check(records)
	GinkgoWriter.Printf("\noverlap check of the %s example: %s\n", w.example, report)
	Expect(err).NotTo(HaveOccurred())
}
