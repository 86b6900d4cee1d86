package allocation

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/overlap"
)

// withoutPartitions is the last commit that knows no partitions.
const withoutPartitions = "7bb9f699f5c0bd158a9e8a40482a4b2b6adf0428"

// builtAt returns the program of a package as it was at a commit.
func builtAt(ctx context.Context, commit, pkg string) string {
	GinkgoHelper()
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	source := GinkgoT().TempDir()
	archive := filepath.Join(source, "source.tar")
	out, err := exec.CommandContext(ctx, "git", "-C", root, "archive", "-o", archive, commit).CombinedOutput() //nolint:gosec // a constant
	Expect(err).NotTo(HaveOccurred(), "%s: a spec needs the whole history; git fetch --unshallow gets it", out)
	out, err = exec.CommandContext(ctx, "tar", "-xf", archive, "-C", source).CombinedOutput() //nolint:gosec // a file of this spec
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	program := filepath.Join(source, "program")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, pkg) //nolint:gosec // a package of this repository
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	out, err = build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return program
}

// worked returns the partitions whose work goes on by the logs. A partition that two logs show is there twice.
func (w *workload) worked() []int {
	GinkgoHelper()
	records, err := overlap.Read(w.probe)
	Expect(err).NotTo(HaveOccurred())
	last := map[string]overlap.Record{}
	for _, r := range records {
		last[r.Holder()] = r
	}
	var all []int
	for _, r := range last {
		if r.ID != overlap.None && time.Duration(overlap.Now()-r.After) < 2*time.Second {
			all = append(all, r.ID)
		}
	}
	return all
}

var _ = Describe("A version that knows no partitions", func() {
	It("is replaced by one that does, and comes back, and nothing is doubled or lost", func(ctx SpecContext) {
		const count, pods = 12, 3
		w := newWorkload(ctx, store.Deployment)
		ids := filepath.Join(w.probe, "ids")
		Expect(os.Mkdir(ids, 0o755)).To(Succeed()) //nolint:gosec // a directory of the spec
		old, now := w.linkedSpec(builtAt(ctx, withoutPartitions, "./test/worker"), "linked"), w.linkedSpec(testworker, "partitions")
		for i := range old.Containers[0].Env {
			if e := &old.Containers[0].Env[i]; e.Name == "PROBE_DIR" {
				e.Value = ids
			}
		}
		become := func(spec *corev1.PodSpec) {
			GinkgoHelper()
			deployments := env.Client.AppsV1().Deployments(w.Name)
			Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				d, err := deployments.Get(ctx, "worker", metav1.GetOptions{})
				if err != nil {
					return err
				}
				d.Spec.Template.Spec.Containers = spec.Containers
				_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
				return err
			})).To(Succeed())
			w.rolled(ctx, pods)
		}
		all := make([]int, count)
		for i := range all {
			all[i] = i
		}

		By("starting without partitions")
		w.start(ctx, pods, old, rolling("1", "0"))
		w.divide(ctx, count)
		for range 2 {
			By("rolling to a version with partitions")
			become(now)
			Eventually(w.worked).WithContext(ctx).Should(ConsistOf(all))
			By("rolling back")
			become(old)
			Eventually(w.worked).WithContext(ctx).Should(BeEmpty())
		}
		become(now)
		Eventually(w.worked).WithContext(ctx).Should(ConsistOf(all))

		records, err := overlap.Read(ids)
		Expect(err).NotTo(HaveOccurred())
		_, err = overlap.Check(records)
		Expect(err).NotTo(HaveOccurred())
	})
})
