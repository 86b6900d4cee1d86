package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/internal/connect"
)

// kubeconfig writes a file that names this server and, unless it is empty, this namespace.
func kubeconfig(t *testing.T, server, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + server + "'}}]\n" +
		"contexts: [{name: c, context: {cluster: c, namespace: '" + namespace + "'}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// outside is a process that is in no pod, with this KUBECONFIG.
func outside(t *testing.T, kubeconfig string) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, kubeconfig)
}

func TestTheFileThatIsNamedComesFirst(t *testing.T) {
	ambient := kubeconfig(t, "https://ambient.example", "shop")
	for name, tc := range map[string]struct{ named, server, namespace string }{
		"a file":                     {kubeconfig(t, "https://named.example", "mine"), "https://named.example", "mine"},
		"a file without a namespace": {kubeconfig(t, "https://named.example", ""), "https://named.example", "default"},
		"none":                       {"", "https://ambient.example", "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			outside(t, ambient)
			config, namespace, err := (&connect.Flags{Kubeconfig: tc.named}).Config()
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != tc.server || namespace != tc.namespace {
				t.Errorf("server %s, namespace %s, want %s, %s", config.Host, namespace, tc.server, tc.namespace)
			}
			if config.QPS >= 0 {
				t.Errorf("the client sends at most %g requests a second, and should not count them", config.QPS)
			}
		})
	}
}

func TestWithoutAnAPIServerTheErrorSaysWhatToDo(t *testing.T) {
	outside(t, "")
	for host, want := range map[string]string{"": "point KUBECONFIG or --kubeconfig", "10.0.0.1": "set serviceAccountName"} {
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		_, _, err := new(connect.Flags).Config()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("with the server %q: %v", host, err)
		}
	}
}

func TestAFileThatCannotBeUsedIsNamed(t *testing.T) {
	outside(t, "")
	_, _, err := (&connect.Flags{Kubeconfig: "/does/not/exist"}).Config()
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") || !strings.Contains(err.Error(), "name another one") {
		t.Error(err)
	}
}
