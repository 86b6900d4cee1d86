package controlplane_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

func TestControlPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	begin := time.Now()
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("boot took %v", time.Since(begin))
	defer func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}()

	t.Run("the admin may list nodes", func(t *testing.T) {
		if err := listNodes(ctx, cp.Config()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a kubeconfig works as the connection does", func(t *testing.T) {
		path, err := cp.Kubeconfig(controlplane.Admin)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := listNodes(ctx, config); err != nil {
			t.Error(err)
		}
	})
	t.Run("a user without a binding may do nothing", func(t *testing.T) {
		config, err := cp.AddUser("nobody", "somegroup")
		if err != nil {
			t.Fatal(err)
		}
		if err := listNodes(ctx, config); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		}
	})
	t.Run("a service account has a token", func(t *testing.T) {
		config, err := serviceAccount(ctx, cp)
		if err != nil {
			t.Fatal(err)
		}
		if err := listNodes(ctx, config); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		}
	})
	t.Run("the API server comes back with its state", func(t *testing.T) {
		begin := time.Now()
		cp.KillAPIServer()
		if err := listNodes(ctx, cp.Config()); err == nil {
			t.Error("the killed API server answered")
		}
		if err := cp.StartAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("restart took %v", time.Since(begin))
		if err := listNodes(ctx, cp.Config()); err != nil {
			t.Error(err)
		}
	})
	t.Run("the controllers work after an outage", func(t *testing.T) { controllersWork(ctx, t, cp) })
	t.Run("Stop leaves nothing", func(t *testing.T) { stopLeavesNothing(t, cp) })
}

func stopLeavesNothing(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	pids := cp.Pids()
	if len(pids) != 3 {
		t.Errorf("%d processes, want 3", len(pids))
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(-pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if _, err := os.Stat(cp.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there", cp.Dir())
	}
}

// controllersWork has them give a new namespace its service account.
func controllersWork(ctx context.Context, t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "after-the-outage"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.CoreV1().ServiceAccounts(namespace.Name).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if event := <-watch.ResultChan(); event.Object == nil {
		t.Error("the watch ended before the service account came")
	}
}

// serviceAccount waits for the default account, which a controller creates.
func serviceAccount(ctx context.Context, cp *controlplane.ControlPlane) (*rest.Config, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		config, err := cp.ServiceAccountConfig(ctx, metav1.NamespaceDefault, "default")
		if !apierrors.IsNotFound(err) {
			return config, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

func listNodes(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	return err
}
