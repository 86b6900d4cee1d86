package suite

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Account is the service account of the pods that PodSpec makes.
const Account = "idalloc"

// Rules returns what idalloc may do in its namespace.
func Rules() []rbacv1.PolicyRule {
	verbs := []string{"get", "list", "watch", "patch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "replicasets"}, Verbs: verbs},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: verbs},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// StrictRules returns what idalloc may do in its namespace in strict mode: Rules, and the Leases.
func StrictRules() []rbacv1.PolicyRule {
	return append(Rules(), rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"},
	})
}

// Grant creates a service account and lets it do what rules say, in this
// namespace only.
func (n *Namespace) Grant(ctx context.Context, account string, rules ...rbacv1.PolicyRule) error {
	options := metav1.CreateOptions{}
	meta := metav1.ObjectMeta{Name: account}
	if _, err := n.client.CoreV1().ServiceAccounts(n.Name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, options); err != nil {
		return fmt.Errorf("suite: create service account %s: %w", account, err)
	}
	if _, err := n.client.RbacV1().Roles(n.Name).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, options); err != nil {
		return fmt.Errorf("suite: create role %s: %w", account, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: n.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
	}
	if _, err := n.client.RbacV1().RoleBindings(n.Name).Create(ctx, binding, options); err != nil {
		return fmt.Errorf("suite: bind role %s: %w", account, err)
	}
	return nil
}
