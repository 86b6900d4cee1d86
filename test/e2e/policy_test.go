//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	policyFolder = "../../config/policy"
	byPolicy     = "ValidatingAdmissionPolicy 'idalloc'"
)

// enforcePolicy installs config/policy, waits until it is in force, and sees at the end that it still is. The accounts
// of the examples have its mark, so all specs run under it. A policy that the cluster had before stays.
func enforcePolicy(ctx context.Context) {
	GinkgoHelper()
	w := newWorkload(ctx, linked)
	w.manifest.deployment.Spec.Replicas = new(int32(0))
	install(ctx, policyFolder, "validatingadmissionpolicybinding/idalloc")
	w.apply(ctx)
	w.limited(ctx)
	DeferCleanup(func(ctx SpecContext) { w.limited(ctx) }, NodeTimeout(patience)) //nolint:contextcheck // the same
}

// limited waits until the policy refuses what the Role of the workload permits.
func (w *workload) limited(ctx context.Context) {
	GinkgoHelper()
	account := fmt.Sprintf("system:serviceaccount:%s:%s", w.namespace, w.manifest.serviceAccount.Name)
	Eventually(func(ctx context.Context) error {
		_, err := w.kubectl(ctx, "label", "deployment", name, "example.com/probe=yes", "--dry-run=server", "--as="+account)
		return err
	}).WithContext(ctx).Should(MatchError(ContainSubstring(byPolicy)))
}

// as returns a client with a token like the one that the kubelet mounts into this pod.
func as(ctx context.Context, pod *corev1.Pod) kubernetes.Interface {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	token, err := client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	c := rest.AnonymousClientConfig(config)
	c.BearerToken = token.Status.Token
	of, err := kubernetes.NewForConfig(c)
	Expect(err).NotTo(HaveOccurred())
	return of
}

var _ = Describe("A policy of another tool", Serial, func() {
	It("that refuses the renewals of strict pods is named where people look, and they have their ids again without it", func(ctx SpecContext) {
		w := prepare(ctx, linked, 2, strictly)
		w.apply(ctx)
		pod := w.held(ctx, 2)[1]
		permit := w.refuse(ctx, "leases", "")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.kubectl(ctx, "get", "events", "--field-selector=reason=RenewalRefused,involvedObject.name="+pod)).To(ContainSubstring(another))
			code, says := w.verdict(ctx, "deployment/"+name)
			g.Expect(code).NotTo(BeZero())
			g.Expect(says).To(And(ContainSubstring(pod), ContainSubstring(another)))
			g.Expect(w.explained(ctx, pod)).To(ContainSubstring(another))
		}).WithContext(ctx).Should(Succeed())
		permit(ctx)
		w.held(ctx, 2)
	}, SpecTimeout(3*patience))
})

var _ = Describe("The admission policy", func() {
	It("lets a pod's token write idalloc's keys on the pod and its workload, and nothing else", Label(mainFlow), func(ctx SpecContext) {
		w, _ := startLinked(ctx, 2)
		pods, err := w.pods(ctx)
		Expect(err).NotTo(HaveOccurred())
		own, another := &pods[0], &pods[1]
		thief := as(ctx, own)
		// Nothing is changed.
		options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: assignment.FieldManager}
		pod := func(p *corev1.Pod, patch string) error {
			_, err := thief.CoreV1().Pods(w.namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, []byte(patch), options)
			return err
		}
		deployment := func(patch string) error {
			_, err := thief.AppsV1().Deployments(w.namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), options)
			return err
		}
		refused := func(sentence string) OmegaMatcher {
			return And(MatchError(apierrors.IsForbidden, "IsForbidden"), MatchError(ContainSubstring(byPolicy)), MatchError(ContainSubstring(sentence)))
		}
		waits := func(owner string) string {
			text := receipt.Receipt{UID: string(own.UID), Owner: owner, State: receipt.Waits, Write: receipt.Draw()}.Encode()
			return fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null},"annotations":{%q:%q}}}`, receipt.IDLabel, receipt.OwnerLabel, receipt.Key, text)
		}

		Expect(deployment(fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, assignment.Key))).To(Succeed())
		Expect(pod(own, waits("Deployment/"+name))).To(Succeed())
		Expect(pod(own, waits("Deployment/other"))).To(refused("the receipt of pods " + own.Name + " names Deployment/other"))
		Expect(pod(own, fmt.Sprintf(`{"metadata":{"labels":{%q:"deployment.other"}}}`, receipt.OwnerLabel))).To(refused("its label idalloc.dev/owner is deployment.other"))
		Expect(pod(another, waits("Deployment/"+name))).To(refused("the token is that of pod " + own.Name))
		Expect(pod(own, `{"spec":{"containers":[{"name":"worker","image":"example.com/evil"}]}}`)).To(refused("may not change the spec of pods " + own.Name))
		Expect(deployment(`{"spec":{"template":{"spec":{"containers":[{"name":"worker","image":"example.com/evil"}]}}}}`)).To(refused("may not change the spec of deployments " + name))
		Expect(deployment(`{"metadata":{"annotations":{"example.com/key":"x"}}}`)).To(refused("example.com/key of deployments " + name))

		// The alert IdallocPolicyMissing reads these.
		metrics, err := w.kubectl(ctx, "get", "--raw", "/metrics")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(metrics, "\napiserver_request_total{")).To(BeTrue())
		Expect(regexp.MatchString(`(?m)^apiserver_admission_match_condition_evaluation_seconds_count\{kind="policy",name="idalloc",.*\} [1-9]`, metrics)).To(BeTrue())
	}, SpecTimeout(patience))
})
