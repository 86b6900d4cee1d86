package allocation

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// commandStart is one start of a wrapped command.
type commandStart struct {
	Pod              string
	ID, Count, Token int
	PID              int
}

// diary is the file in which the commands of a workload write when they start and how they are told
// to end. A line is one write, so that lines of several pods do not mix.
func (w *workload) diary() string { return filepath.Join(w.scratch(), "diary") }

// scratch is a directory beside that of the probes, whose files are all records.
func (w *workload) scratch() string {
	GinkgoHelper()
	dir := w.probe + "-run"
	Expect(os.MkdirAll(dir, 0o750)).To(Succeed())
	return dir
}

// wrapSpec has one container: a command under idalloc run. The script sees ids in the arguments 1 and
// 2 and in its environment.
func (w *workload) wrapSpec(script string, flags ...string) *corev1.PodSpec {
	GinkgoHelper()
	command := slices.Concat([]string{env.Binary, "run", "--http-address", "$(POD_IP):8089"}, flags,
		[]string{"--", "/bin/sh", "-c", strings.ReplaceAll(script, "DIARY", w.diary()), "sh", "{id}", "{count}"})
	c := suite.Container("idalloc", command...)
	c.ReadinessProbe = readyz(8089)
	spec := suite.PodSpec(c)
	seconds := int64(60)
	spec.TerminationGracePeriodSeconds = &seconds
	return spec
}

// says is the line of a start. Kubernetes makes one dollar sign of two.
const says = `test "$1/$2" = "$IDALLOC_ID/$IDALLOC_COUNT" && echo "start $POD_NAME $1 $2 $IDALLOC_TOKEN $$$$" >> DIARY`

// works is a command that starts, works and stops when told. It knows how before it says that it started.
const works = `trap 'echo "stop $POD_NAME $1" >> DIARY; exit 0' TERM; ` + says + `; while :; do sleep 0.05; done`

// starts reads the diary.
func (w *workload) starts() []commandStart {
	GinkgoHelper()
	f, err := os.Open(w.diary())
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(f.Close()).To(Succeed()) }()
	var found []commandStart
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s commandStart
		if n, _ := fmt.Sscanf(lines.Text(), "start %s %d %d %d %d", &s.Pod, &s.ID, &s.Count, &s.Token, &s.PID); n == 5 {
			found = append(found, s)
		}
	}
	return found
}

// started returns the latest start of each pod.
func (w *workload) started() map[string]commandStart {
	GinkgoHelper()
	latest := map[string]commandStart{}
	for _, s := range w.starts() {
		latest[s.Pod] = s
	}
	return latest
}

// running waits until the command of each holder runs under its id and count.
func (w *workload) running(ctx SpecContext, n int) map[int]commandStart {
	GinkgoHelper()
	held := w.settled(ctx, n)
	found := map[int]commandStart{}
	Eventually(func(g Gomega) {
		latest := w.started()
		for id, pod := range held {
			g.Expect(latest).To(HaveKey(pod))
			g.Expect(latest[pod]).To(And(HaveField("ID", id), HaveField("Count", n)))
			found[id] = latest[pod]
		}
	}).WithContext(ctx).Should(Succeed())
	return found
}

// lives reports whether a process runs. A zombie does not.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

var _ = Describe("idalloc run", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, kinds.Deployment)
		DeferCleanup(os.RemoveAll, w.scratch())
	})

	It("starts the command under an id, and again with a new count", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.wrapSpec(works)))).To(Succeed())
		three := w.running(ctx, 3)
		Expect(w.Scale(ctx, kinds.Deployment, "worker", 5)).To(Succeed())
		five := w.running(ctx, 5)
		for id, before := range three {
			Expect(five[id].Pod).To(Equal(before.Pod))
			Expect(five[id].Token).To(Equal(before.Token), "the id was held all the time")
			Expect(five[id].PID).NotTo(Equal(before.PID))
			Expect(lives(before.PID)).To(BeFalse())
			Expect(restarts(w.pod(ctx, before.Pod), "idalloc")).To(BeZero(), "the command is started again, not the container")
		}
	})

	It("passes SIGTERM on, and releases the slot when the command has ended", func(ctx SpecContext) {
		hold := filepath.Join(w.scratch(), "hold")
		Expect(os.WriteFile(hold, nil, 0o600)).To(Succeed())
		script := `trap 'echo "asked $POD_NAME" >> DIARY; while test -e ` + hold + `; do sleep 0.05; done; exit 0' TERM; ` + says + `; while :; do sleep 0.05; done`
		Expect(w.Create(ctx, suite.Deployment("worker", 1, w.wrapSpec(script, "--stop-timeout=50s")))).To(Succeed())
		before := w.running(ctx, 1)[0]
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, before.Pod, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() (string, error) {
			diary, err := os.ReadFile(w.diary())
			return string(diary), err
		}).WithContext(ctx).Should(ContainSubstring("asked " + before.Pod))
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{0: before.Pod}), "the command has not ended")
		Expect(lives(before.PID)).To(BeTrue())
		Expect(os.Remove(hold)).To(Succeed())
		Expect(w.running(ctx, 1)[0].Pod).NotTo(Equal(before.Pod))
		Expect(lives(before.PID)).To(BeFalse())
	})

	It("takes the command with it when it is killed", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 1, w.wrapSpec(works)))).To(Succeed())
		before := w.running(ctx, 1)[0]
		Expect(env.Node.Signal(w.Name, before.Pod, "idalloc", syscall.SIGKILL)).To(Succeed())
		Eventually(func() commandStart { return w.started()[before.Pod] }).WithContext(ctx).ShouldNot(Equal(before))
		Expect(lives(before.PID)).To(BeFalse())
	})

	It("publishes files when told where, and passes the output on", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		dir := filepath.Join(w.scratch(), "ids")
		got := w.idalloc(ctx, pod, "run", "--http-address", "", "--dir", dir, "--", "/bin/sh", "-c", `cat "$1/id"; kill -KILL $$`, "sh", dir)
		Expect(got.Code).To(Equal(128+9), got.Stderr)
		Expect(got.Stdout).To(Equal("0\n"))
		Expect(got.Stderr).NotTo(ContainSubstring("error:"))
		Expect(filepath.Join(dir, "id")).NotTo(BeAnExistingFile())
		Expect(w.assignment(ctx)).To(BeEmpty())
	})
})
