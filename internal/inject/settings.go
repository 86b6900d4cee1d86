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

// The annotations of a pod template that say how its sidecar is to be.
const (
	prefix = "inject.idalloc.dev/"

	// The sidecar's image.
	imageKey = prefix + "image"
	// The directory of the files.
	dirKey = prefix + "dir"
	// Which containers see the id, with commas between them; all but init containers if it is absent.
	containersKey = prefix + "containers"
	// The drain hook: http.
	drainKey = prefix + "drain"
	// Whether the program works on partitions: "true" or "false".
	partitionsKey = prefix + "partitions"
	// After how long without contact to the API server the work is stopped (strict mode).
	fenceAfterKey = prefix + "fence-after"
	// The command that stops the work (strict mode).
	fenceExecKey = prefix + "fence-exec"
	// What the sidecar requests, such as cpu=5m,memory=24Mi, which it does by itself.
	requestsKey = prefix + "requests"
	// Its limits, such as cpu=100m,memory=64Mi; by itself it has that of memory alone.
	limitsKey = prefix + "limits"
	// AccountKey is the account of a pod that names none.
	AccountKey = prefix + "service-account"
)

const (
	defaultDir     = "/var/run/idalloc"
	defaultAccount = "idalloc"
	drainHTTP      = "http"

	// What idalloc watch accepts for --fence-after.
	minFenceAfter = 3 * time.Second
	maxFenceAfter = time.Hour
	// minMemory is what the sidecar needs at least.
	minMemory = "24Mi"
)

// settings are what the annotations of a template say.
type settings struct {
	image, dir, drain, fenceAfter, fenceExec string
	// requests and limits are empty for the sidecar's own.
	requests, limits string
	// account is empty if the template does not name it.
	account string
	// containers is empty for all but init containers.
	containers []string
	partitions bool
}

// readSettings returns what the annotations of a template say, or why they make no sense.
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

// amount is the amount of one resource. The policy of config/inject/refusal.yaml says the same.
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

// resources changes those of the sidecar.
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

// runAs sets the pod's service account. A pod that names one keeps it, and keeps what it says about its token.
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
		remove(spec, "serviceAccount") // the old name of the field, which would contradict
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

// unmount removes the token that the API server mounted into a new pod, of an account that the pod has no more.
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
