package inspect

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/internal/runs"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// checks is the command that finds problems of the controller.
const checks = "`kubectl idalloc check`"

// pod is a pod as read from the API server.
type pod struct {
	proposal.Pod // the part that a planner sees
	assigned
	counted
	revision, node, phase string
	// account is the pod's service account.
	account string
	// runs: the pod's object shows that idalloc runs in it.
	runs bool
	// ready: the pod's condition Ready is true. graceless: each deletion of the pod is a force delete.
	ready, graceless bool
	// controller is the name of the pod's direct controller, or "". template is the hash of its Deployment's pod template.
	controller, template string
	// namesake: that controller has the owner's name but is another kind.
	namesake bool
	// elsewhere is the pod's receipt if it is for another owner.
	elsewhere receipt.Receipt
	// damage describes what is wrong with the receipt or its labels, or is "".
	damage string
	// written is when idalloc last wrote the pod's receipt, zero if the server does not tell.
	written time.Time
}

// divides reports whether the pod lives and takes part in the division of partitions, even if it has none at the moment.
func (p pod) divides() bool {
	return p.live() && p.Receipt.State == receipt.Locks && p.Receipt.Share.Of > 0
}

// abstains reports whether the pod lives, has a slot and takes no part in the division of partitions.
func (p pod) abstains() bool {
	return p.live() && p.Receipt.State == receipt.Locks && p.Receipt.Share.Of == 0
}

// gaveUp reports whether the pod has given up its slot and has not taken another one.
func (p pod) gaveUp() bool {
	return !p.Receipt.Locked() && (p.Receipt.State == receipt.GaveUp || p.Receipt.Rank > 0)
}

// isAssigned and isPlain are the other kinds of waiters: with and without a label for the controller.
func (p pod) isAssigned() bool { return !p.gaveUp() && p.assign() != "" }
func (p pod) isPlain() bool    { return !p.gaveUp() && p.assign() == "" }

// takes reports whether the pod must do the next step to this id of the map, and not the controller.
func (p pod) takes(id int) bool {
	told := p.told != nil && p.told.Share.ID == id
	return !p.byController && (told || !p.byAgent)
}

// sign reports whether the pod has a trace of idalloc, which runs or ran in it.
func (p pod) sign() bool {
	return p.Receipt.State != receipt.None || p.elsewhere.State != receipt.None || p.byController
}

func (p pod) live() bool { return !census.Finished(p.phase) }

func newPod(u *unstructured.Unstructured, owner store.Owner, owned bool) pod {
	var p pod
	var err error
	if p.Pod, err = census.PodOf(owner, u, owned); err != nil {
		p.damage = "annotation " + receipt.Key + ": " + err.Error()
	}
	p.runs, p.assigned = runsIdalloc(u), assignedOf(u)
	switch r, err := receipt.Parse(u.GetAnnotations()[receipt.Key]); {
	case p.byController && p.Former.State == receipt.Locks, p.keepsFormer(owner): // it keeps the owner under which it began
		p.Pod = p.Moved()
	case err == nil && r.UID == p.UID && r.Owner != owner.String() && !p.byController:
		p.elsewhere = r
	}
	if is := u.GetAnnotations(); p.byController {
		p.counted = counted{onCount: is[assignment.OnCountKey], started: is[receipt.StartCountKey], turn: is[receipt.TurnKey] != ""}
	}
	p.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	p.account, _, _ = unstructured.NestedString(u.Object, "spec", "serviceAccountName")
	p.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	p.ready = condition(u, "Ready")["status"] == "True"
	p.graceless = store.Graceless(u)
	p.written = store.LastWrite(u.GetManagedFields())
	labels := u.GetLabels()
	if p.damage == "" && p.Receipt.Locked() && (labels[receipt.OwnerLabel] != assignment.OwnerLabelValue(cmp.Or(p.Receipt.Owner, owner.String())) || labels[receipt.IDLabel] != number(p.Receipt.Slot())) {
		p.damage = "labels " + receipt.OwnerLabel + " and " + receipt.IDLabel + " do not say what the receipt locks, so other pods do not see it"
	}
	p.template = labels["pod-template-hash"]
	p.revision = cmp.Or(p.template, labels[kinds.RevisionLabel])
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		p.controller, p.namesake = c.Name, c.Name == owner.Name && !owner.Names(c)
	}
	return p
}

// keepsFormer reports whether idalloc in the pod continues under what it locked for its former owner, because this owner proposes the same.
func (p pod) keepsFormer(owner store.Owner) bool {
	return p.told != nil && p.told.Owner.String() == owner.String() && p.Former.State == receipt.Locks && p.Former.Share.Equal(p.told.Share)
}

// assigned is the state of a pod for which the controller plans or locks.
type assigned struct {
	// byController: the controller writes the pod's receipt.
	byController bool
	// gated: the pod waits behind idalloc's gate. gates are its other gates.
	gated bool
	gates []string
	// contract is the value of annotation receipt.ContractKey if this version does not keep that contract.
	contract string
	// given is the id that the program reads, or "".
	given string
	// first is the first machine number for which the pod asks, or 0. noNumber explains why that number is invalid, or is "".
	first    int
	noNumber string
	// known is the count that the pod was last told, or "".
	known string
	// byAgent: idalloc in the pod locks what the controller proposes. told is that proposal, or nil.
	byAgent bool
	told    *receipt.Proposal
}

func assignedOf(u *unstructured.Unstructured) assigned {
	a := assigned{byController: u.GetLabels()[receipt.AssignLabel] == receipt.ByController, given: u.GetAnnotations()[receipt.IDKey], known: u.GetAnnotations()[receipt.CountKey]}
	first, problem := assignment.FirstNumber(u.GetAnnotations())
	if a.first = first; problem != nil {
		a.noNumber = problem.Error()
	}
	a.byAgent = u.GetLabels()[receipt.AssignLabel] == receipt.ByAgent
	if told, ok := receipt.ProposalOf(u); ok && a.byAgent {
		a.told, a.known = &told, number(told.Count)
	}
	if receipt.Newer(u.GetAnnotations()) {
		a.contract = strconv.Quote(u.GetAnnotations()[receipt.ContractKey])
	}
	for _, g := range fields.Objects(u.Object, "spec", "schedulingGates") {
		if name, _ := g["name"].(string); name == receipt.Gate {
			a.gated = true
		} else {
			a.gates = append(a.gates, name)
		}
	}
	return a
}

// assign returns the value of the label idalloc.dev/assign, or "" for a peer.
func (a assigned) assign() string {
	switch {
	case a.byController:
		return receipt.ByController
	case a.byAgent:
		return receipt.ByAgent
	}
	return ""
}

// behind explains why a pod waits behind its gates or for a proposal.
func (p pod) behind() []string {
	switch {
	case len(p.gates) > 0:
		return []string{"the pod has other scheduling gates (" + strings.Join(p.gates, ", ") + "): it gets an id when idalloc's gate is the last"}
	case p.gated && p.contract != "":
		return []string{fmt.Sprintf("the pod has annotation %s: %s, and this version keeps contracts up to %d: upgrade idalloc-controller, and this program", receipt.ContractKey, p.contract, receipt.Contract)}
	case p.gated && p.noNumber != "":
		return []string{p.noNumber + ": the pod gets no id; correct or remove the annotation in the pod template"}
	case p.byAgent && p.told == nil:
		return []string{"idalloc-controller has proposed nothing to the pod: it is away, or it does not know the workload; see " + checks + ". Pods with an id keep it meanwhile"}
	case p.byAgent && p.told.Why != "":
		return []string{"idalloc-controller proposes no id to the pod: " + p.told.Why}
	case p.gated:
		return []string{"the pod waits behind the scheduling gate " + receipt.Gate + ", which idalloc-controller removes when it has given the pod an id; if an id is free and the pod waits on, see " + checks}
	}
	return nil
}

// lacking returns the next step before the pod has this id of the map.
func (p pod) lacking(id int) string {
	switch {
	case p.takes(id):
		return "idalloc in the pod has not locked it yet"
	case p.byAgent:
		return "idalloc-controller has not told the pod yet"
	}
	return "idalloc-controller has not locked it yet"
}

// runsIdalloc reports whether idalloc runs in a pod, judging by its object: it asks for the sidecar, or a container's program is idalloc.
func runsIdalloc(pod *unstructured.Unstructured) bool {
	if pod.GetLabels()["idalloc.dev/inject"] == "true" {
		return true
	}
	for _, field := range []string{"initContainers", "containers"} {
		for _, c := range fields.Objects(pod.Object, "spec", field) {
			image, _, _ := unstructured.NestedString(c, "image")
			command, _, _ := unstructured.NestedStringSlice(c, "command")
			args, _, _ := unstructured.NestedStringSlice(c, "args")
			if runs.Idalloc(image, command, args) {
				return true
			}
		}
	}
	return false
}

// condition returns the object's condition of this type, or nil.
func condition(u *unstructured.Unstructured, of string) map[string]any {
	for _, c := range fields.Objects(u.Object, "status", "conditions") {
		if c["type"] == of {
			return c
		}
	}
	return nil
}

// number formats an id or another number.
func number(n int) string { return strconv.Itoa(n) }
