//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/test/envtest/example"
)

const (
	// consumerImage is this test binary, which plays consumers.
	consumerImage = "idalloc/orders:e2e"
	// user is that of all containers: images of CLUSTER_LOAD say none.
	user         = int64(65532)
	configFolder = "../../config"
	policyName   = "idalloc"
)

// cluster is the one of KUBECONFIG. Its node is this machine.
type cluster struct {
	kubernetes.Interface

	// address is the node's, at which its pods reach this machine.
	address string
	// autoscaler is the image of idalloc-autoscaler, and program the binary that consumers run.
	autoscaler, program string
}

// newCluster brings the consumer's image to the node, and installs the admission policy until the test ends.
func newCluster(ctx context.Context, t *testing.T) *cluster {
	t.Helper()
	c := &cluster{autoscaler: os.Getenv("E2E_AUTOSCALER")}
	if c.autoscaler == "" {
		t.Fatal("set E2E_AUTOSCALER to an image of idalloc-autoscaler that the node has; hack/e2e does")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	must(t, err)
	c.Interface, err = kubernetes.NewForConfig(config)
	must(t, err)
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			c.address = a.Address
		}
	}
	c.program, err = os.Executable()
	must(t, err)
	load := exec.CommandContext(ctx, os.Getenv("CLUSTER_LOAD"), consumerImage, c.program) //nolint:gosec // the command that the caller of the test names
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("CLUSTER_LOAD: %v: %s", err, out)
	}
	_, err = c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, policyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Cleanup(func() {
			_, err := kubectl(context.WithoutCancel(ctx), "", "delete", "-k", configFolder+"/policy")
			must(t, err)
		})
		_, err = kubectl(ctx, "", "apply", "-k", configFolder+"/policy")
	}
	must(t, err)
	return c
}

// namespace makes one, which goes at the end of the test. The end waits for its pods.
func (c *cluster) namespace(ctx context.Context, t *testing.T) string {
	t.Helper()
	n, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-e2e-"}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_, pods := kubectl(ctx, "", "delete", "deployments", "--all", "-n", n.Name, "--cascade=foreground", "--timeout=2m")
		_, all := kubectl(ctx, "", "delete", "namespace", n.Name, "--wait=false")
		must(t, errors.Join(pods, all))
	})
	return n.Name
}

// apply does what a user does with an example, a folder of this repository, after change has put the user's own values into its Deployments.
func (c *cluster) apply(ctx context.Context, t *testing.T, namespace, folder string, change func(*appsv1.Deployment)) {
	t.Helper()
	text, err := kubectl(ctx, "", "kustomize", "../../"+folder)
	must(t, err)
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		object, _, err := decoder.Decode(doc, nil, nil)
		must(t, err)
		if d, ok := object.(*appsv1.Deployment); ok {
			change(d)
		}
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	b, err := json.Marshal(list)
	must(t, err)
	_, err = kubectl(ctx, string(b), "apply", "-n", namespace, "-f", "-")
	must(t, err)
}

// consumes has the pods of a Deployment consume queues, and write down what they do in a directory of this machine.
func (c *cluster) consumes(d *appsv1.Deployment, w *way, url string, annotations map[string]string) {
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
	}
	const mounted = "/probe"
	d.Spec.Replicas = new(int32(fewest))
	pod := &d.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "probe", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: w.probe, Type: new(corev1.HostPathDirectory)},
	}})
	pod.SecurityContext.RunAsUser = new(user)
	worker := &pod.Containers[0]
	worker.Image, worker.ImagePullPolicy = "docker.io/"+consumerImage, corev1.PullNever
	worker.Command = []string{"/" + filepath.Base(c.program)}
	worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: "probe", MountPath: mounted})
	for name, value := range map[string]string{
		roleEnv: roleConsumer, probeEnv: mounted, "RABBITMQ_URL": url, "QUEUES": w.queues.Name, "HTTP_ADDRESS": ":8080",
	} {
		worker.Env = append(worker.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// scales has a Deployment of autoscaler/config read the loads of queues from a broker.
func (c *cluster) scales(d *appsv1.Deployment, w *way, broker *example.Server) error {
	management, err := broker.Said("management")
	pod := &d.Spec.Template.Spec
	pod.SecurityContext.RunAsUser = new(user)
	container := &pod.Containers[0]
	container.Image, container.ImagePullPolicy = c.autoscaler, corev1.PullNever
	container.Args = []string{
		"run", "deployment/" + example.Scaled, fmt.Sprintf("--capacity=%d", capacity), fmt.Sprintf("--min-replicas=%d", fewest), "--max-replicas=20",
		"--source=rabbitmq", "--source-url=" + management, "--rabbitmq-prefix=" + w.queues.Name + "-P", "--log-format=console",
		"--period=500ms", "--window=15s", "--every=2s", "--after-up=5s", "--after-down=5s",
	}
	return err
}

func kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...) //nolint:gosec // arguments of the test
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
