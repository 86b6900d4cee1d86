package controlplane

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a service account's token is good for.
const tokenSeconds = int64(24 * 60 * 60)

// Config returns the connection of the admin user, without client-side rate limit.
func (c *ControlPlane) Config() *rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rest.CopyConfig(c.users[Admin])
}

// AddUser signs a client certificate for a user in groups and returns its
// connection. The user can do what RBAC gives it: without a binding, nothing.
// Adding a name again replaces its groups for new connections.
func (c *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.authority.client(name, groups)
	if err != nil {
		return nil, err
	}
	config := c.connection()
	config.CertData, config.KeyData = cert, key
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users[name] = config
	return rest.CopyConfig(config), nil
}

// Kubeconfig writes a kubeconfig for Admin or for a user that AddUser added,
// and returns its path.
func (c *ControlPlane) Kubeconfig(user string) (string, error) {
	c.mu.Lock()
	config, ok := c.users[user]
	c.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("controlplane: user %q was not added", user)
	}
	return c.WriteKubeconfig(user, config)
}

// ServiceAccountConfig asks the API server for a token of a service account and
// returns a connection that uses it. The token is good for a day and names no pod.
func (c *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	return c.tokenConfig(ctx, namespace, name, nil)
}

// PodConfig is the same with a token that is bound to a pod, like those that a
// kubelet mounts: it names the pod, and it ends with the pod.
func (c *ControlPlane) PodConfig(ctx context.Context, pod *corev1.Pod) (*rest.Config, error) {
	return c.tokenConfig(ctx, pod.Namespace, pod.Spec.ServiceAccountName,
		&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

func (c *ControlPlane) tokenConfig(ctx context.Context, namespace, name string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	seconds := tokenSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}
	response, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("controlplane: token of service account %s/%s: %w", namespace, name, err)
	}
	config := c.connection()
	config.BearerToken = response.Status.Token
	return config, nil
}

// WriteKubeconfig writes a kubeconfig with the credentials of config to a file
// named after name, and returns its path.
func (c *ControlPlane) WriteKubeconfig(name string, config *rest.Config) (string, error) {
	const entry = "idalloc"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[entry] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[entry] = &clientcmdapi.AuthInfo{
		Token:                 config.BearerToken,
		ClientCertificateData: slices.Clone(config.CertData),
		ClientKeyData:         slices.Clone(config.KeyData),
	}
	kubeconfig.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	kubeconfig.CurrentContext = entry
	path := c.path("kubeconfig", name)
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", fmt.Errorf("controlplane: kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

func (c *ControlPlane) connection() *rest.Config {
	return &rest.Config{
		Host:            c.url(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem},
		QPS:             -1,
	}
}
