// Package suite is what a test binary needs to run idalloc under real
// controllers: one control plane, one process node, the built command, and for
// each spec a namespace with a service account that may do what idalloc needs.
//
// It knows nothing of Ginkgo, so that the demo and the benchmarks use it too. In
// a Ginkgo suite:
//
//	var env *suite.Suite
//
//	var _ = BeforeSuite(func(ctx SpecContext) {
//		var err error
//		env, err = suite.Start(ctx, suite.Options{Log: GinkgoLogr})
//		Expect(err).NotTo(HaveOccurred())
//		DeferCleanup(env.Stop)
//	})
//
//	It("gives every replica an id", func(ctx SpecContext) {
//		ns, err := env.NewNamespace(ctx)
//		Expect(err).NotTo(HaveOccurred())
//		DeferCleanup(ns.Delete)
//
//		spec := suite.PodSpec(suite.Container("main", "/bin/sh", "-c", "exec sleep 100000"))
//		spec.InitContainers = []corev1.Container{suite.Sidecar("idalloc", env.Binary, "watch", "--dir", "/ids")}
//		suite.Share(spec, "/ids")
//		Expect(ns.Create(ctx, suite.Deployment("worker", 5, spec))).To(Succeed())
//		Eventually(func() (int, error) {
//			pods, err := ns.ReadyPods(ctx, "worker")
//			return len(pods), err
//		}).Should(Equal(5))
//	})
//
// Containers made by Container and Sidecar have POD_NAME, POD_NAMESPACE, POD_UID
// and POD_IP, and the node gives them KUBECONFIG with a token of their pod's
// service account. The API server applies RBAC to it: NewNamespace takes other
// rules than Rules for specs about missing permissions.
//
// The API server may be killed and started again through ControlPlane, the node
// cut off through Node. Processes, pods' addresses and logs are there too.
package suite
