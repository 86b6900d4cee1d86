package inject

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/idalloc/idalloc/internal/hook"
)

// Annotations of a pod template that configure its sidecar.
const (
	prefix = "inject.idalloc.dev/"

	// The sidecar's image.
	imageKey = prefix + "image"
	// The directory of the files.
	dirKey = prefix + "dir"
	// The containers that see the id, separated by commas. If it is absent, all but init containers see it.
	containersKey = prefix + "containers"
	// The drain hook: http.
	drainKey = prefix + "drain"
	// "true" if the program works on partitions, or "false".
	partitionsKey = prefix + "partitions"
	// Strict mode: the work is stopped after this time without contact to the API server.
	fenceAfterKey = prefix + "fence-after"
	// Strict mode: the command that stops the work.
	fenceExecKey = prefix + "fence-exec"
	// The sidecar's resource requests. Default: cpu=5m,memory=24Mi.
	requestsKey = prefix + "requests"
	// Its limits, such as cpu=100m,memory=64Mi. By default it has only a memory limit.
	limitsKey = prefix + "limits"
	// AccountKey is the service account for a pod that names none.
	AccountKey = prefix + "service-account"
)

const (
	defaultDir     = "/var/run/idalloc"
	defaultAccount = "idalloc"
	drainHTTP      = "http"

	// The minimum of --fence-after of idalloc watch.
	minFenceAfter = 3 * time.Second
	maxFenceAfter = time.Hour
	// minMemory is the least memory with which the sidecar works.
	minMemory = "24Mi"
)

// settings are read from the annotations of a template.
type settings struct {
	image, dir, drain, fenceAfter, fenceExec string
	// requests and limits are empty if the sidecar keeps its defaults.
	requests, limits string
	// account is empty if the template does not name it.
	account string
	// containers is empty if all but init containers should see the id.
	containers []string
	partitions bool
}

// readSettings reads the annotations of a template. The error explains why a value is invalid.
func readSettings(template *yaml.Node, image string) (settings, error) {
	s := settings{image: image, dir: defaultDir}
	annotations := descend(template, "metadata", "annotations")
	if annotations == nil || annotations.Kind != yaml.MappingNode {
		return s, nil
	}
	for k := 0; k < len(annotations.Content); k += 2 {
		if err := s.set(annotations.Content[k].Value, annotations.Content[k+1].Value); err != nil {
			return s, err
		}
	}
	err := s.check()
	return s, err
}

func (s *settings) set(key, text string) error {
	switch key {
	case imageKey:
		s.image = text
	case dirKey:
		s.dir = text
	case containersKey:
		s.containers = strings.Split(text, ",")
	case drainKey:
		s.drain = text
	case partitionsKey:
		s.partitions = text == yes
		if text != yes && text != "false" {
			return fmt.Errorf("annotation %s is %q: use \"true\" or \"false\"", key, text)
		}
	case fenceAfterKey:
		s.fenceAfter = text
	case fenceExecKey:
		s.fenceExec = text
	case requestsKey:
		s.requests = text
		return checkAmounts(key, text)
	case limitsKey:
		s.limits = text
		return checkLimits(key, text)
	case AccountKey:
		s.account = text
	default:
		if strings.HasPrefix(key, prefix) {
			return fmt.Errorf("there is no annotation %s: see docs/injection.md for those that there are", key)
		}
	}
	return nil
}

// amount matches the amount of one resource. The policy of config/inject/refusal.yaml has the same expression.
var amount = regexp.MustCompile(`^[a-z][a-z0-9./-]*=[0-9]+([.][0-9]+)?(m|k|[MGT]|[KMGT]i)?$`)

func checkAmounts(key, text string) error {
	for one := range strings.SplitSeq(text, ",") {
		if !amount.MatchString(one) {
			return fmt.Errorf("annotation %s is %q: use NAME=QUANTITY with commas between them, such as cpu=5m,memory=24Mi", key, text)
		}
	}
	return nil
}

func checkLimits(key, text string) error {
	if err := checkAmounts(key, text); err != nil {
		return err
	}
	least := resource.MustParse(minMemory)
	for one := range strings.SplitSeq(text, ",") {
		name, quantity, _ := strings.Cut(one, "=")
		if is, err := resource.ParseQuantity(quantity); name == "memory" && (err != nil || is.Cmp(least) < 0) {
			return fmt.Errorf("annotation %s is %q: the sidecar needs memory=%s or more", key, text, minMemory)
		}
	}
	return nil
}

// resources sets the requests and limits of the sidecar.
func (s *settings) resources(sidecar *yaml.Node) {
	for key, text := range map[string]string{"requests": s.requests, "limits": s.limits} {
		if text == "" {
			continue
		}
		all := &yaml.Node{Kind: yaml.MappingNode}
		for one := range strings.SplitSeq(text, ",") {
			name, quantity, _ := strings.Cut(one, "=")
			put(all, name, scalar(quantity))
		}
		put(field(sidecar, "resources"), key, all)
	}
}

func (s *settings) check() error {
	switch {
	case s.image == "":
		return fmt.Errorf("annotation %s is empty: name an image, or remove it", imageKey)
	case !path.IsAbs(s.dir) || strings.Contains(s.dir, ":"):
		return fmt.Errorf("annotation %s is %q: use an absolute path without a colon, such as %s", dirKey, s.dir, defaultDir)
	case s.drain != "" && s.drain != drainHTTP:
		return fmt.Errorf("annotation %s is %q: use http, or remove it", drainKey, s.drain)
	case slices.Contains(s.containers, ""):
		return fmt.Errorf("annotation %s has an empty name: name containers with commas between them, and without spaces", containersKey)
	case (s.fenceAfter == "") != (s.fenceExec == ""):
		return fmt.Errorf("annotations %s and %s work only together: set both", fenceAfterKey, fenceExecKey)
	case s.fenceAfter == "":
		return nil
	}
	after, err := time.ParseDuration(s.fenceAfter)
	if err != nil || after < minFenceAfter || after > maxFenceAfter {
		return fmt.Errorf("annotation %s is %q: use a duration from %s to %s", fenceAfterKey, s.fenceAfter, minFenceAfter, maxFenceAfter)
	}
	if _, err := hook.Parse(s.fenceExec); err != nil {
		return fmt.Errorf("annotation %s is %q: %w", fenceExecKey, s.fenceExec, err)
	}
	return nil
}

// args returns the arguments of the sidecar.
func (s *settings) args() []string {
	args := []string{"watch"}
	if s.dir != defaultDir {
		args = append(args, "--dir="+s.dir)
	}
	if s.drain != "" {
		args = append(args, "--drain="+s.drain)
	}
	if s.partitions {
		args = append(args, "--partitions")
	}
	if s.fenceAfter != "" {
		args = append(args, "--fence-after="+s.fenceAfter, "--fence-exec="+s.fenceExec)
	}
	return args
}

// runAs sets the pod's service account. If the pod already names one, the account and the token settings stay as they are.
func (s *settings) runAs(spec *yaml.Node) (changed bool, err error) {
	account := value(spec, "serviceAccountName")
	if account == "" {
		account = value(spec, "serviceAccount")
	}
	want := s.account
	if want == "" {
		want = defaultAccount
	}
	switch {
	case account == "" || account == "default":
		remove(spec, "serviceAccount") // the field's old name, which would contradict the new value
		put(spec, "serviceAccountName", scalar(want))
		if field(spec, "automountServiceAccountToken") == nil {
			put(spec, "automountServiceAccountToken", boolean(false))
			unmount(spec)
		}
		return true, nil
	case s.account != "" && s.account != account:
		return false, fmt.Errorf("the pod runs as %s, and annotation %s says %s: remove one of them", account, AccountKey, s.account)
	}
	return false, nil
}

// unmount removes the token that the API server mounted into a new pod for the account that has been replaced.
func unmount(spec *yaml.Node) {
	const api = "kube-api-access-"
	for _, l := range append([]*yaml.Node{spec}, containers(spec)...) {
		for _, key := range []string{"volumes", "volumeMounts"} {
			for _, n := range elements(list(l, key)) {
				if name := value(n, "name"); strings.HasPrefix(name, api) {
					drop(l, key, name)
				}
			}
		}
	}
}

var errNoContainers = errors.New("the pod template has no containers: add one, or remove the label idalloc.dev/inject")
