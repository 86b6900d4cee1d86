package observe

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/conformance"
)

// audited holds the fields of an audit.k8s.io/v1 event that matter here.
type audited struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"` //nolint:tagliatelle // Kubernetes' name
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`

	version int64
	lists   bool
}

const (
	// podUID is the key under which the API server names the pod to which an account's token is bound.
	podUID = "authentication.kubernetes.io/pod-uid"
	// controllerAccount is the end of the name of idalloc-controller's account.
	controllerAccount = ":idalloc-controller"
	longestEvent      = 64 << 20
)

// Audit shows an Observer an audit log. Its level for pods must be RequestResponse. It is read in the order of resourceVersions.
func Audit(log io.Reader, o *Observer) error {
	var all []audited
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longestEvent)
	for n := 1; lines.Scan(); n++ {
		var e audited
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("line %d of the audit log: %w", n, err)
		}
		if e.matters() {
			all = append(all, e)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	slices.SortStableFunc(all, func(a, b audited) int {
		if order := cmp.Compare(a.version, b.version); order != 0 || a.lists == b.lists {
			return order
		}
		if b.lists {
			return -1
		}
		return 1
	})
	for _, e := range all {
		e.show(o)
	}
	return nil
}

// matters reports whether the event is an accepted write of a pod, or a list of pods.
func (e *audited) matters() bool {
	if e.Stage != "ResponseComplete" || e.ObjectRef.Resource != "pods" || e.ResponseStatus.Code/100 != 2 || strings.Contains(e.RequestURI, "dryRun=") {
		return false
	}
	var response struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(e.ResponseObject, &response) != nil {
		return false
	}
	var err error
	e.version, err = strconv.ParseInt(response.Metadata.ResourceVersion, 10, 64)
	e.lists = e.Verb == "list"
	return err == nil && slices.Contains([]string{"create", "update", "patch", "delete", "list"}, e.Verb)
}

func (e *audited) show(o *Observer) {
	if e.lists {
		e.list(o)
		return
	}
	var pod struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	if json.Unmarshal(e.ResponseObject, &pod) != nil || pod.Metadata.UID == "" {
		return
	}
	deleted := e.Verb == "delete" && pod.Metadata.DeletionGracePeriodSeconds != nil && *pod.Metadata.DeletionGracePeriodSeconds == 0
	if deleted || pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed" {
		o.Gone(string(pod.Metadata.UID))
		return
	}
	w := conformance.Write{By: e.author(string(pod.Metadata.UID)), Patch: conformance.ReadPatch(e.RequestObject)}
	if len(e.User.Extra[podUID]) > 0 {
		w.Process = e.User.Extra[podUID][0]
	}
	o.Pod(&pod.Metadata, &w, false)
}

func (e *audited) list(o *Observer) {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"items"`
	}
	if json.Unmarshal(e.ResponseObject, &list) != nil {
		return
	}
	l := conformance.List{Version: e.version, Newest: true}
	if by := e.User.Extra[podUID]; len(by) > 0 && !strings.HasSuffix(e.User.Username, controllerAccount) {
		l.By, l.Process = by[0], by[0]
	} else if !strings.HasSuffix(e.User.Username, controllerAccount) {
		return
	}
	for i := range list.Items {
		l.Pods = append(l.Pods, &list.Items[i].Metadata)
	}
	o.Listed(l)
}

// author returns who wrote to the pod.
func (e *audited) author(uid string) conformance.Author {
	switch {
	case slices.Contains(e.User.Extra[podUID], uid):
		return conformance.Process
	case strings.HasSuffix(e.User.Username, controllerAccount):
		return conformance.Controller
	}
	return conformance.Another
}
