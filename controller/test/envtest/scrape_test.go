package envtest

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/scrape"
)

var _ = Describe("metrics with authentication", func() {
	It("are for accounts that the API server lets read them, once it lets the controller ask", func(ctx SpecContext) {
		namespace, o := newNamespace(ctx), metav1.CreateOptions{}
		account := func(name string) (token string) {
			GinkgoHelper()
			_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, o)
			Expect(err).NotTo(HaveOccurred())
			config, err := plane.ServiceAccountConfig(ctx, namespace, name)
			Expect(err).NotTo(HaveOccurred())
			return config.BearerToken
		}
		permit := func(name string, rules ...rbacv1.PolicyRule) {
			GinkgoHelper()
			role, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: name}, Rules: rules}, o)
			Expect(err).NotTo(HaveOccurred())
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
			}, o)
			Expect(err).NotTo(HaveOccurred())
		}
		stranger, prometheus := account("stranger"), account("prometheus")
		account("controller")
		own, err := plane.ServiceAccountConfig(ctx, namespace, "controller")
		Expect(err).NotTo(HaveOccurred())

		handler, err := scrape.Permitted(own, GinkgoLogr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		Expect(err).NotTo(HaveOccurred())
		server := httptest.NewUnstartedServer(handler)
		server.TLS, err = scrape.TLS()
		Expect(err).NotTo(HaveOccurred())
		server.StartTLS()
		DeferCleanup(server.Close)
		scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as the chart's monitors do
		answer := func(authorization string) int {
			GinkgoHelper()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/metrics", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			response, err := scraper.Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			return response.StatusCode
		}

		By("the controller may not ask")
		Expect(answer("Bearer " + prometheus)).To(Equal(http.StatusInternalServerError))
		permit("controller",
			rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})

		By("without the right")
		Eventually(func() int { return answer("Bearer " + prometheus) }).WithContext(ctx).Should(Equal(http.StatusForbidden))
		permit("prometheus", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})

		By("with it")
		Eventually(func() int { return answer("Bearer " + prometheus) }).WithContext(ctx).Should(Equal(http.StatusOK))
		Expect(answer("bearer " + prometheus)).To(Equal(http.StatusOK))

		By("by others")
		Expect(answer("Bearer " + stranger)).To(Equal(http.StatusForbidden))
		for _, none := range []string{"", "Bearer", "Bearer ", "Bearer a.b.c", "Basic " + prometheus, prometheus} {
			Expect(answer(none)).To(Equal(http.StatusUnauthorized), none)
		}
	})
})
