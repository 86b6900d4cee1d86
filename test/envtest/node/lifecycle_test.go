package node_test

import (
	"fmt"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func exec(script string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", script}}}
}

var _ = Describe("a pod's life", func() {
	It("runs init containers in order, gates on a sidecar's startup probe, shares volumes", func(ctx SpecContext) {
		shared := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
		first := shell("first", "echo first >>/shared/order")
		side := sidecar("side", "trap 'exit 0' TERM; sleep .3; echo side >>/shared/order; touch /shared/up; while :; do sleep .05; done")
		side.StartupProbe = &corev1.Probe{ProbeHandler: exec("test -f /shared/up"), FailureThreshold: 100}
		last := shell("last", "echo last >>/shared/order")
		main := shell("main", "cat $(DIR)/order; echo $OWN $NAME; "+forever)
		main.Env = []corev1.EnvVar{
			{Name: "DIR", Value: "/shared"},
			{Name: "OWN", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['own']"}}},
			{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}
		spec := podSpec(main)
		spec.InitContainers = []corev1.Container{first, side, last}
		spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				list[i].VolumeMounts = shared
			}
		}
		createPod(ctx, "ordered", spec)
		Eventually(getPod(ctx, "ordered")).Should(Satisfy(beReady))
		Eventually(lines("ordered", "main")).Should(Equal([]string{"first", "side", "last", "label", "ordered"}))
	})

	It("stops sidecars after the containers and in reverse order, reporting each end", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		log, gate := dir+"/order", dir+"/gate"
		says := func(name, first string) string {
			return fmt.Sprintf("trap '%s echo %s >>%s; exit 0' TERM; touch %s/%s; while :; do sleep .02; done", first, name, log, dir, name)
		}
		spec := podSpec(shell("main", says("main", "")))
		spec.InitContainers = []corev1.Container{
			sidecar("one", says("one", "")), sidecar("two", says("two", "until test -e "+gate+"; do sleep .02; done;")),
		}
		grace := int64(300)
		spec.TerminationGracePeriodSeconds = &grace
		createPod(ctx, "sides", spec)
		Eventually(getPod(ctx, "sides")).Should(Satisfy(beReady))
		for _, name := range []string{"main", "one", "two"} {
			Eventually(dir + "/" + name).Should(BeAnExistingFile()) // it knows what to do when told to end
		}

		watcher, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=sides"})
		Expect(err).NotTo(HaveOccurred())
		defer watcher.Stop()
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "sides", metav1.DeleteOptions{})).To(Succeed())
		sawMainAlone, phase := false, corev1.PodUnknown
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			Expect(ok).To(BeTrue())
			phase = pod.Status.Phase
			if event.Type == "DELETED" {
				break
			}
			if pod.Status.ContainerStatuses[0].State.Terminated != nil && pod.Status.InitContainerStatuses[0].State.Running != nil {
				sawMainAlone = true
				touch(gate)
			}
		}
		Expect(sawMainAlone).To(BeTrue(), "the container's end was not reported before the sidecars'")
		Expect(phase).To(Equal(corev1.PodSucceeded))
		Expect(readFields(log)).To(Equal([]string{"main", "two", "one"}))
	})

	It("ends a Job's pod although its sidecar would run on", func(ctx SpecContext) {
		spec := podSpec(shell("main", "exit 0"))
		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.InitContainers = []corev1.Container{sidecar("side", forever)}
		createPod(ctx, "batch", spec)
		Eventually(getPod(ctx, "batch")).Should(Satisfy(bePhase(corev1.PodSucceeded)))
		Expect(worker.Pids(namespace, "batch")).To(BeEmpty())
	})

	It("runs the preStop hook, then SIGTERM, then SIGKILL after the grace period", func(ctx SpecContext) {
		mark := GinkgoT().TempDir() + "/mark"
		main := shell("main", "trap 'echo term >>"+mark+"' TERM; touch "+mark+"; while :; do sleep .05; done")
		main.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "echo hook >>" + mark}},
		}}
		spec := podSpec(main)
		grace := int64(3)
		spec.TerminationGracePeriodSeconds = &grace
		createPod(ctx, "stubborn", spec)
		Eventually(getPod(ctx, "stubborn")).Should(Satisfy(beReady))
		Eventually(mark).Should(BeAnExistingFile()) // SIGTERM will not end it
		pid := worker.Pids(namespace, "stubborn")["main"]
		begin := time.Now()
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "stubborn", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error { _, err := getPod(ctx, "stubborn")(); return err }).Should(Satisfy(apierrors.IsNotFound))
		Expect(time.Since(begin)).To(BeNumerically(">=", 3*time.Second))
		Expect(running(pid)).To(BeFalse())
		Expect(readFields(mark)).To(Equal([]string{"hook", "term"}))
	})

	It("honours the grace period of a pod that was deleted by force", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		up, gate, mark := dir+"/up", dir+"/gate", dir+"/mark"
		spec := podSpec(shell("main", "trap 'until test -e "+gate+"; do sleep .05; done; echo bye >"+mark+"; exit' TERM; touch "+up+"; while :; do sleep .05; done"))
		grace := int64(300)
		spec.TerminationGracePeriodSeconds = &grace
		createPod(ctx, "forced", spec)
		Eventually(getPod(ctx, "forced")).Should(Satisfy(beReady))
		Eventually(up).Should(BeAnExistingFile())
		pid := worker.Pids(namespace, "forced")["main"]
		now := int64(0)
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "forced", metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		Expect(running(pid)).To(BeTrue())
		touch(gate)
		Eventually(func() bool { return running(pid) }).Should(BeFalse())
		Expect(readFields(mark)).To(Equal([]string{"bye"}))
	})

	It("follows readiness and restarts on a failed liveness probe", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		main := shell("main", forever)
		main.ReadinessProbe = &corev1.Probe{ProbeHandler: exec("test -f " + dir + "/ready"), FailureThreshold: 1}
		main.LivenessProbe = &corev1.Probe{ProbeHandler: exec("test ! -f " + dir + "/sick"), FailureThreshold: 1}
		createPod(ctx, "probed", podSpec(main))
		Eventually(getPod(ctx, "probed")).Should(Satisfy(beUnready))
		touch(dir + "/ready")
		Eventually(getPod(ctx, "probed")).Should(Satisfy(beReady))
		remove(dir + "/ready")
		Eventually(getPod(ctx, "probed")).Should(Satisfy(beUnready))
		touch(dir + "/ready")

		By("failing liveness")
		touch(dir + "/sick")
		Eventually(getPod(ctx, "probed")).Should(Satisfy(func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > 0 }))
		remove(dir + "/sick")
		Eventually(getPod(ctx, "probed")).Should(Satisfy(beReady))
	})

	It("restarts a container that crashed, in place", func(ctx SpecContext) {
		createPod(ctx, "crashing", podSpec(shell("main", forever)))
		Eventually(getPod(ctx, "crashing")).Should(Satisfy(beReady))
		Expect(worker.Signal(namespace, "crashing", "main", syscall.SIGKILL)).To(Succeed())
		Eventually(getPod(ctx, "crashing")).Should(Satisfy(func(p *corev1.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return beReady(p) && c.RestartCount == 1 && c.LastTerminationState.Terminated.ExitCode == 128+int32(syscall.SIGKILL)
		}))
	})

	It("probes HTTP and TCP on the pod's address", func(ctx SpecContext) {
		main := shell("main", forever)
		main.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8089}}
		get := &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("web")}
		main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}
		dial := &corev1.TCPSocketAction{Port: intstr.FromInt32(8089)}
		main.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: dial}, FailureThreshold: 1000}
		createPod(ctx, "served", podSpec(main))
		var pod *corev1.Pod
		Eventually(func() (string, error) {
			var err error
			pod, err = getPod(ctx, "served")()
			return pod.Status.PodIP, err
		}).ShouldNot(BeEmpty())
		Consistently(getPod(ctx, "served"), 500*time.Millisecond).ShouldNot(Satisfy(beReady))
		server := serve(pod.Status.PodIP + ":8089")
		Eventually(getPod(ctx, "served")).Should(Satisfy(beReady))
		server.Close()
		Eventually(getPod(ctx, "served")).Should(Satisfy(beUnready))
	})

	It("leaves an evicted pod behind as Failed", func(ctx SpecContext) {
		createPod(ctx, "evicted", podSpec(shell("main", forever)))
		Eventually(getPod(ctx, "evicted")).Should(Satisfy(beReady))
		Expect(worker.Evict(ctx, namespace, "evicted")).To(Succeed())
		p, err := getPod(ctx, "evicted")()
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Status.Phase).To(Equal(corev1.PodFailed))
		Expect(p.Status.Reason).To(Equal("Evicted"))
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "evicted", metav1.DeleteOptions{})).To(Succeed())
		Eventually(podNames(ctx)).Should(BeEmpty())
	})

	It("retries a failing init container, or fails the pod", func(ctx SpecContext) {
		mark := GinkgoT().TempDir() + "/mark"
		spec := podSpec(shell("main", forever))
		spec.InitContainers = []corev1.Container{shell("init", "test -f "+mark+" || { touch "+mark+"; exit 1; }")}
		createPod(ctx, "retried", spec)
		Eventually(getPod(ctx, "retried")).Should(Satisfy(beReady))

		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.InitContainers = []corev1.Container{shell("init", "exit 3")}
		createPod(ctx, "failed", spec)
		Eventually(getPod(ctx, "failed")).Should(Satisfy(bePhase(corev1.PodFailed)))
	})
})
