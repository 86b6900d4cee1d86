package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/node"
)

const (
	defaultProbePeriod = 100 * time.Millisecond
	// command is the package of the binary under test.
	command = "./cmd/idalloc"
	// image is the name that manifests use for it.
	image = "idalloc"
)

// Options configures Start. The zero value is ready to use.
type Options struct {
	// SkipBinary leaves the command unbuilt, for tests that do not run it.
	SkipBinary bool
	// ProbePeriod replaces periodSeconds of all probes. Default: 100 ms.
	ProbePeriod time.Duration
	// Images maps further image names to programs; see node.Options.
	Images map[string]string
	// Controller installs idalloc-controller and its admission policies. It runs as a pod of the node.
	Controller bool
	// BoundTokens gives each pod a token of its own that is bound to it, as a
	// kubelet does. Otherwise all pods of a service account have the same token,
	// which outlives them.
	BoundTokens bool
	// Log gets what the control plane and the node have to say.
	Log logr.Logger
}

// Suite is a running control plane with its node.
type Suite struct {
	ControlPlane *controlplane.ControlPlane
	Node         *node.Node
	// Client is the admin's.
	Client kubernetes.Interface
	// Binary is the path of the built command, empty after SkipBinary. Containers
	// with the image idalloc and no command run it.
	Binary string

	dir string

	mu          sync.Mutex
	kubeconfigs map[string]string // by namespace and service account
}

// Start builds the command, boots a control plane and starts a node. With a warm
// build cache it takes about five seconds. On error nothing is left running.
func Start(ctx context.Context, options Options) (*Suite, error) {
	s := &Suite{kubeconfigs: map[string]string{}}
	if err := s.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("suite: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Suite) start(ctx context.Context, options Options) (err error) {
	if s.dir, err = os.MkdirTemp("", "idalloc-suite-"); err != nil {
		return err
	}
	if !options.SkipBinary {
		if s.Binary, err = Build(ctx, s.dir, command); err != nil {
			return err
		}
	}
	if s.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{Log: options.Log}); err != nil {
		return err
	}
	if s.Client, err = kubernetes.NewForConfig(s.ControlPlane.Config()); err != nil {
		return err
	}
	if err := s.startNode(ctx, options); err != nil || !options.Controller {
		return err
	}
	return s.installController(ctx)
}

func (s *Suite) startNode(ctx context.Context, options Options) (err error) {
	images := map[string]string{}
	maps.Copy(images, options.Images)
	if s.Binary != "" {
		images[image] = s.Binary
	}
	if options.Controller {
		if images[controllerImage], err = Build(ctx, s.dir, controllerCommand); err != nil {
			return err
		}
	}
	if options.ProbePeriod == 0 {
		options.ProbePeriod = defaultProbePeriod
	}
	kubeconfig := s.accountKubeconfig
	if options.BoundTokens {
		kubeconfig = s.podKubeconfig
	}
	s.Node, err = node.Start(ctx, s.ControlPlane.Config(), node.Options{
		Kubeconfig:  kubeconfig,
		Images:      images,
		ProbePeriod: options.ProbePeriod,
		Log:         options.Log,
	})
	return err
}

// Stop kills everything and removes what was written. It may be called again.
func (s *Suite) Stop() error {
	var errs []error
	if s.Node != nil {
		s.Node.Stop()
	}
	if s.ControlPlane != nil {
		errs = append(errs, s.ControlPlane.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// Build compiles a package of the project into dir and returns the program's path.
// The program is built without the race detector: it is the one that users run.
func Build(ctx context.Context, dir, pkg string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, filepath.Base(pkg))
	// In its own directory, because the package may be of another module of this repository.
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".") //nolint:gosec // the name is a test's
	cmd.Dir = filepath.Join(root, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

// podKubeconfig gives a pod credentials of its own.
func (s *Suite) podKubeconfig(ctx context.Context, pod *corev1.Pod) (string, error) {
	config, err := s.ControlPlane.PodConfig(ctx, pod)
	if err != nil {
		return "", err
	}
	return s.ControlPlane.WriteKubeconfig("pod_"+string(pod.UID), config)
}

// accountKubeconfig gives pods their service account's credentials. One token
// serves all pods of an account.
func (s *Suite) accountKubeconfig(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	name := "serviceaccount_" + pod.Namespace + "_" + account
	s.mu.Lock()
	defer s.mu.Unlock()
	if path, ok := s.kubeconfigs[name]; ok {
		return path, nil
	}
	config, err := s.ControlPlane.ServiceAccountConfig(ctx, pod.Namespace, account)
	if err != nil {
		return "", err
	}
	path, err := s.ControlPlane.WriteKubeconfig(name, config)
	if err == nil {
		s.kubeconfigs[name] = path
	}
	return path, err
}
