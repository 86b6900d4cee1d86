package policy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

// ownManifest is a Deployment that was written without idalloc in mind: two containers, an init container, a volume and
// labels of their own. A container that starts without an id ends at once.
const ownManifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 2
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      terminationGracePeriodSeconds: 5
      initContainers:
        - {name: own, image: example.com/own, command: [/bin/true]}
      containers:
        - name: one
          image: example.com/one
          command: [/bin/sh, -c, "test -s /var/run/idalloc/id && exec sleep 100000"]
        - name: two
          image: example.com/two
          command: [/bin/sh, -c, "test -s /var/run/idalloc/id && exec sleep 100000"]
          volumeMounts:
            - {name: data, mountPath: /data}
      volumes:
        - {name: data, emptyDir: {}}
`

// ownKustomization is what they write to get ids.
const ownKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - deployment.yaml
components:
  - ../component
`

// processNode is what the process node needs changed: all its pods have one network, and no mounts.
const processNode = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: our-
resources:
  - ../queue-reader
  - ../mailer
images:
  - name: ghcr.io/idalloc/idalloc
    newName: idalloc
patches:
  - target: {kind: Deployment}
    patch: |-
      - {op: add, path: /spec/template/spec/initContainers/0/args/-, value: --dir=/var/run/idalloc}
      - {op: add, path: /spec/template/spec/initContainers/0/args/-, value: "--http-address=$(POD_IP):8089"}
      - {op: add, path: /spec/template/spec/initContainers/0/env/-, value: {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}}
`

// overlays writes two workloads that use the component, and a kustomization of both.
func overlays() (top string) {
	GinkgoHelper()
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	Expect(os.CopyFS(filepath.Join(dir, "component"), os.DirFS(filepath.Join(root, "config", "component")))).To(Succeed())
	for folder, files := range map[string]map[string]string{
		"queue-reader": {"kustomization.yaml": ownKustomization, "deployment.yaml": fmt.Sprintf(ownManifest, "queue-reader")},
		"mailer":       {"kustomization.yaml": ownKustomization, "deployment.yaml": fmt.Sprintf(ownManifest, "mailer")},
		"top":          {"kustomization.yaml": processNode},
	} {
		Expect(os.Mkdir(filepath.Join(dir, folder), 0o700)).To(Succeed())
		for name, text := range files {
			Expect(os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o600)).To(Succeed())
		}
	}
	return filepath.Join(dir, "top")
}

func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	kubeconfig, err := env.ControlPlane.Kubeconfig(controlplane.Admin)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(env.ControlPlane.Assets(), "kubectl"), args...) //nolint:gosec // arguments of the tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
}

var _ = Describe("the kustomize component", func() {
	It("gives two Deployments ids, each by an account that may write its own Deployment alone", func(ctx SpecContext) {
		ns, err := env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		kubectl(ctx, "apply", "-n", ns.Name, "--validate=strict", "-k", overlays())

		for _, name := range []string{"queue-reader", "mailer"} {
			By(name)
			Eventually(func(g Gomega) {
				ready, err := ns.ReadyPods(ctx, name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(ready).To(HaveLen(2))
			}).WithContext(ctx).Should(Succeed())
			ref, err := kinds.ParseRef("deployment/our-"+name, ns.Name)
			Expect(err).NotTo(HaveOccurred())
			owner, err := (&workload{Namespace: ns, ref: ref}).owner(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(owner.Record.State.Slots).To(HaveLen(2))

			role, err := env.Client.RbacV1().Roles(ns.Name).Get(ctx, "our-"+name+"-idalloc", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			shipped := specs.Manifest[*rbacv1.Role]("config/base/role.yaml").Rules
			shipped[0].ResourceNames = []string{"our-" + name}
			Expect(role.Rules).To(Equal(shipped), "the rules of config/base")
		}

		pods := somePods(ctx, ns, "mailer", 2)
		thief := in(ctx, &pods[0])
		thief.limited(ctx, deployments, "our-mailer")
		Expect(thief.merge(ctx, deployments, "our-queue-reader", `{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`)).
			To(MatchError(ContainSubstring(`cannot patch resource "deployments"`)))
	})
})

var _ = Describe("the network policy", func() {
	It("is one that the API server takes", func(ctx SpecContext) {
		root, err := controlplane.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "apply", "--dry-run=server", "--validate=strict", "-n", "default", "-k", filepath.Join(root, "config", "networkpolicy"))
		kubectl(ctx, "apply", "--dry-run=server", "--validate=strict", "-n", "default", "-k", filepath.Join(root, "config", "networkpolicy", "prometheus"))
	})
})
