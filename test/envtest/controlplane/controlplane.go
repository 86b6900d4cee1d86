package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// Admin is the user that every control plane starts with, a member of
// system:masters.
const Admin = "admin"

// Options configures Start. The zero value is ready to use.
type Options struct {
	// Assets is the directory of etcd, kube-apiserver and
	// kube-controller-manager. Empty: found, or built, by Assets.
	Assets string
	// Dir takes the data, credentials and logs. Empty: a temporary directory,
	// removed by Stop. A given one is left behind.
	Dir string
	// Log gets a few lines about starts and stops. The zero value discards them.
	Log logr.Logger
	// NoControllers leaves kube-controller-manager out: nothing changes but what clients change. Namespaces
	// have no service accounts then and are never gone.
	NoControllers bool
}

// ControlPlane is a running control plane. Its methods may be called at once
// from several goroutines, except for Stop, KillAPIServer and StartAPIServer.
type ControlPlane struct {
	options     Options
	temporary   bool
	log         logr.Logger
	group       *process.Group
	authority   *authority
	ports       ports
	api         *program
	controllers *program // nil without

	mu    sync.Mutex
	users map[string]*rest.Config
}

// Start boots a control plane and returns when the API server is ready and the
// controllers run, usually after a few seconds. When it must download or build the programs
// first, it takes minutes; ctx bounds that too. On error nothing is left
// running, and the error names the log of what failed.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	c := &ControlPlane{options: options, log: options.Log, users: map[string]*rest.Config{}}
	if c.log.GetSink() == nil {
		c.log = logr.Discard()
	}
	if err := c.start(ctx); err != nil {
		// The logs that the error names must outlive the clean-up.
		c.temporary = false
		return nil, errors.Join(fmt.Errorf("controlplane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.options.NoControllers {
		return nil
	}
	return c.startControllers(ctx)
}

func (c *ControlPlane) prepare(ctx context.Context) (err error) {
	if c.options.Assets == "" {
		if c.options.Assets, err = Assets(ctx, c.log); err != nil {
			return err
		}
	}
	if c.options.Dir == "" {
		c.temporary = true
		if c.options.Dir, err = os.MkdirTemp("", "idalloc-controlplane-"); err != nil {
			return err
		}
	}
	for _, dir := range []string{"etcd", "log", "pki", "kubeconfig"} {
		if err := os.MkdirAll(filepath.Join(c.options.Dir, dir), 0o700); err != nil {
			return err
		}
	}
	if c.ports, err = freePorts(ctx); err != nil {
		return err
	}
	if c.authority, err = newAuthority(c.path("pki")); err != nil {
		return err
	}
	if _, err = c.AddUser(Admin, "system:masters"); err != nil {
		return err
	}
	c.group, err = process.NewGroup()
	return err
}

// Stop kills everything and removes the temporary directory. It may be called
// more than once.
func (c *ControlPlane) Stop() error {
	if c.group != nil {
		c.group.Close()
	}
	if c.temporary {
		return os.RemoveAll(c.options.Dir)
	}
	return nil
}

// Dir returns the directory of the data and, in log/, of the programs' logs.
func (c *ControlPlane) Dir() string { return c.options.Dir }

// Assets returns the directory of the programs. kubectl is there too unless the
// directory came from KUBEBUILDER_ASSETS.
func (c *ControlPlane) Assets() string { return c.options.Assets }

func (c *ControlPlane) path(elements ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, elements...)...)
}
