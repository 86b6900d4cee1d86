package request

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	deployments = "deployments"
	testName    = "worker"
)

func theWorker() Target {
	return Target{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: deployments}, "shop", testName}
}

// answered is a Status as an API server sends it.
func answered(code int32, reason metav1.StatusReason, message string, about *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message, Details: about}}
}

func TestWhatMayBeRepeated(t *testing.T) {
	for err, want := range map[error]bool{
		ErrConflict:                             true,
		ErrAmbiguous:                            true,
		ErrNoAnswer:                             true,
		apierrors.NewTooManyRequests("wait", 1): true,
		apierrors.NewUnauthorized("who?"):       true,
		ErrGone:                                 false,
		apierrors.NewBadRequest("what?"):        false,
		apierrors.NewForbidden(schema.GroupResource{}, testName, errors.New("quota")): false,
	} {
		if Temporary(err) != want {
			t.Errorf("%v: to repeat it helps is %t", err, !want)
		}
	}
}

// Behind what counts as no answer the write may have happened.
func TestWhatIsNoAnswer(t *testing.T) {
	worker := &metav1.StatusDetails{Name: testName, Group: "apps", Kind: deployments}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":            {nil, false},
		"a broken connection": {errors.New("broken pipe"), true},
		"a server error":      {answered(http.StatusInternalServerError, metav1.StatusReasonInternalError, "", nil), true},
		"no code":             {answered(0, "", "", nil), true},
		"a timeout":           {answered(http.StatusBadRequest, metav1.StatusReasonTimeout, "", nil), true},
		"a proxy's 404":       {answered(http.StatusNotFound, metav1.StatusReasonNotFound, "", nil), true},
		"the object is gone":  {answered(http.StatusNotFound, metav1.StatusReasonNotFound, "", worker), false},
		"a conflict":          {answered(http.StatusConflict, metav1.StatusReasonConflict, "", worker), false},
	} {
		if theWorker().unanswered(tc.err) != tc.want {
			t.Errorf("%s: no answer is %t", name, !tc.want)
		}
	}
}

func TestWhatIsGone(t *testing.T) {
	about := func(name, group, kind string, causes ...metav1.CauseType) *metav1.StatusDetails {
		d := &metav1.StatusDetails{Name: name, Group: group, Kind: kind}
		for _, c := range causes {
			d.Causes = append(d.Causes, metav1.StatusCause{Type: c})
		}
		return d
	}
	list := theWorker()
	list.Name = ""
	for name, tc := range map[string]struct {
		of    Target
		why   metav1.StatusReason
		about *metav1.StatusDetails
		want  bool
	}{
		"this object":                  {theWorker(), metav1.StatusReasonNotFound, about(testName, "apps", deployments), true},
		"one of another name":          {theWorker(), metav1.StatusReasonNotFound, about("other", "apps", deployments), false},
		"one of another kind":          {theWorker(), metav1.StatusReasonNotFound, about(testName, "apps", "statefulsets"), false},
		"one of another group":         {theWorker(), metav1.StatusReasonNotFound, about(testName, "extensions", deployments), false},
		"another reason":               {theWorker(), metav1.StatusReasonExpired, about(testName, "apps", deployments), false},
		"what the client made of it":   {theWorker(), metav1.StatusReasonNotFound, about(testName, "apps", deployments, metav1.CauseTypeUnexpectedServerResponse), false},
		"a list is never gone":         {list, metav1.StatusReasonNotFound, about("", "apps", deployments), false},
		"a status that names no thing": {theWorker(), metav1.StatusReasonNotFound, nil, false},
	} {
		if tc.of.gone(answered(http.StatusNotFound, tc.why, "", tc.about)) != tc.want {
			t.Errorf("%s: gone is %t", name, !tc.want)
		}
	}
	if theWorker().gone(errors.New("not found")) {
		t.Error("an error that is no answer means gone")
	}
}

func TestRefusals(t *testing.T) {
	const role = `User "system:serviceaccount:shop:worker" cannot patch resource "deployments"`
	if err := theWorker().wrap("patch", nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
	rbac := answered(http.StatusForbidden, metav1.StatusReasonForbidden, role, nil)
	var forbidden *ForbiddenError
	err := theWorker().wrap("patch", rbac)
	if !errors.As(err, &forbidden) || *forbidden != (ForbiddenError{"patch", "apps", deployments, "shop", testName, rbac}) || !errors.Is(err, rbac) {
		t.Errorf("an authorizer's refusal becomes %#v", err)
	}
	for name, other := range map[string]error{
		"a quota's refusal":                    answered(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota", nil),
		"another answer with the same words":   answered(http.StatusConflict, metav1.StatusReasonConflict, role, nil),
		"what is no answer, in the same words": errors.New(role),
	} {
		if err := theWorker().wrap("patch", other); errors.As(err, &forbidden) || !errors.Is(err, other) {
			t.Errorf("%s becomes %#v", name, err)
		}
	}
}

func TestErrorsSayWhatWasTried(t *testing.T) {
	why := answered(http.StatusBadRequest, metav1.StatusReasonBadRequest, "why", nil)
	for want, err := range map[string]error{
		`get deployments "worker" in namespace shop: why`: theWorker().wrap("get", why),
		`list pods in namespace shop: why`:                Target{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "shop", ""}.wrap("list", why),
		`forbidden: cannot get deployments.apps "worker" in namespace shop: add verb "get" on resource "deployments" of API group "apps" ` +
			`to a Role of the account that the API server names; if it is there, its rule's resourceNames do not list "worker": why`: &ForbiddenError{"get", "apps", deployments, "shop", testName, why},
		`forbidden: cannot watch pods in namespace shop: add verb "watch" on resource "pods" of API group "" ` +
			`to a Role of the account that the API server names; if it is there, its rule has resourceNames, which this request, for all of them, must not have: why`: &ForbiddenError{"watch", "", "pods", "shop", "", why},
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant\n%s", err, want)
		}
	}
}

func TestARefusalSaysWhatToLookForWhereTheVerbIsThere(t *testing.T) {
	for want, e := range map[string]*ForbiddenError{
		`its rule's resourceNames do not list "worker"`:    {Verb: "patch", Group: "apps", Resource: deployments, Namespace: "shop", Name: testName},
		`its rule has resourceNames, which this request`:   {Verb: "list", Resource: "pods", Namespace: "shop"},
		`add verb "create" on resource "events" of API gr`: {Verb: "create", Resource: "events", Namespace: "shop"},
	} {
		if got := e.Error(); !strings.Contains(got, want) || !strings.Contains(got, "add verb") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
